// Variables that several files define.
// flags: -std=c++17
inline long total = 40;
struct config { static inline long limit = 7; };
long other();
extern "C" long feature() { total += config::limit; return other() * 100 + total; }
//// other.cpp
inline long total = 40;
struct config { static inline long limit = 7; };
long other() { return total++ + config::limit; }

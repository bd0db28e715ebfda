// Templates and inline functions that two files have: one of each, with one variable each.
template <typename T> long &count() { static long n; return n; }
inline long shared() { static long n = 100; return ++n; }
template <typename T> struct holder { static T value; };
template <typename T> T holder<T>::value = 5;
long other();
extern "C" long feature() {
    count<int>() += 2;
    count<char>() += 1;
    long sum = shared();
    holder<long>::value++;
    return sum * 1000000 + other() * 1000 + count<int>() * 10 + count<char>() + holder<long>::value * 100000000;
}
//// other.cpp
template <typename T> long &count() { static long n; return n; }
inline long shared() { static long n = 100; return ++n; }
template <typename T> struct holder { static T value; };
template <typename T> T holder<T>::value = 5;
long other() { count<int>() += 5; holder<long>::value += 10; return shared(); }

// Streams of the C++ library, and its standard objects.
// refused -fno-pic: the data symbol `
#include <iomanip>
#include <iostream>
#include <sstream>
extern "C" long feature() {
    std::ostringstream out;
    out << "text " << 42 << ' ' << std::setprecision(3) << 3.14159 << std::hex << 255;
    std::istringstream in("17 words");
    long number;
    std::string word;
    in >> number >> word;
    std::cout.flush();
    return out.str().size() * 1000 + number + word.size() + std::cerr.good() * 100000;
}

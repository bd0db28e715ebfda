// Strings and constants in sections that linkers may merge.
#include <string.h>
#include <wchar.h>
long feature(void) {
    const char *volatile first = "suffix of a string", *volatile second = "a string";
    const wchar_t *volatile wide = L"wide text";
    volatile double number = 2.5, other = 1e10;
    return strlen(first) * 100 + strlen(second) + wcslen(wide) * 10000 + (long)(number * 2 + other);
}

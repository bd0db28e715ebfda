// Memory of the C library.
#include <stdlib.h>
#include <string.h>
long feature(void) {
    char *text = malloc(10);
    strcpy(text, "grown");
    text = realloc(text, 1000);
    strcat(text, " text");
    long length = strlen(text);
    char *copy = strdup(text);
    length += strcmp(copy, text) == 0;
    free(copy);
    free(text);
    return length;
}

/* A system for SQLite that has no files: all that a database in memory asks for, by no function of C that the interpreter does not have. */
static int none_open(sqlite3_vfs *v, const char *n, sqlite3_file *f, int a, int *b) { return SQLITE_CANTOPEN; }
static int none_delete(sqlite3_vfs *v, const char *n, int s) { return SQLITE_OK; }
static int none_access(sqlite3_vfs *v, const char *n, int f, int *out) { *out = 0; return SQLITE_OK; }
static int none_path(sqlite3_vfs *v, const char *n, int m, char *out) { int i = 0; for (; n[i] && i < m - 1; i++) out[i] = n[i]; out[i] = 0; return SQLITE_OK; }
static int none_random(sqlite3_vfs *v, int n, char *out) { for (int i = 0; i < n; i++) out[i] = i; return n; }
static int none_sleep(sqlite3_vfs *v, int n) { return n; }
static int none_time(sqlite3_vfs *v, double *t) { *t = 2460000.5; return SQLITE_OK; }
static int none_error(sqlite3_vfs *v, int n, char *out) { return 0; }
static sqlite3_vfs none = { 1, 8, 100, 0, "none", 0, none_open, none_delete, none_access, none_path, 0, 0, 0, 0, none_random, none_sleep, none_time, none_error };
int sqlite3_os_init(void) { return sqlite3_vfs_register(&none, 1); }
int sqlite3_os_end(void) { return SQLITE_OK; }

// SQLite: tables, indices, joins, text and mathematics in memory.
#include <string.h>
#include "sqlite3.h"
static long one(sqlite3 *db, const char *text) {
    sqlite3_stmt *statement;
    long value = -1000;
    if (sqlite3_prepare_v2(db, text, -1, &statement, 0) != SQLITE_OK) return -2000;
    if (sqlite3_step(statement) == SQLITE_ROW) value = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return value;
}
static void twice(sqlite3_context *context, int count, sqlite3_value **values) { sqlite3_result_int64(context, 2 * sqlite3_value_int64(values[0])); }
long check(long rows) {
    sqlite3 *db;
    if (sqlite3_open(":memory:", &db) != SQLITE_OK) return -1;
    sqlite3_exec(db, "create table t(id integer primary key, name text, x real); create index names on t(name)", 0, 0, 0);
    sqlite3_create_function(db, "twice", 1, SQLITE_UTF8, 0, twice, 0, 0);
    sqlite3_stmt *insert;
    sqlite3_prepare_v2(db, "insert into t values(?, ?, ?)", -1, &insert, 0);
    sqlite3_exec(db, "begin", 0, 0, 0);
    for (long n = 0; n < rows; n++) {
        char name[20];
        sqlite3_snprintf(sizeof name, name, "name %ld", n * 7919 % 1000);
        sqlite3_bind_int64(insert, 1, n);
        sqlite3_bind_text(insert, 2, name, -1, SQLITE_TRANSIENT);
        sqlite3_bind_double(insert, 3, n / 3.0);
        if (sqlite3_step(insert) != SQLITE_DONE) return -3;
        sqlite3_reset(insert);
    }
    sqlite3_finalize(insert);
    sqlite3_exec(db, "commit", 0, 0, 0);
    long sum = one(db, "select sum(id) from t where name like 'name 1%'");
    sum = sum * 31 + one(db, "select count(*) from t a join t b on a.name = b.name where a.id < b.id");
    sum = sum * 31 + one(db, "select cast(sum(round(x * 100)) as integer) from t");
    sum = sum * 31 + one(db, "select length(group_concat(upper(name), ';')) from (select distinct name from t order by name desc)");
    sum = sum * 31 + one(db, "with recursive c(n) as (select 1 union all select n + 1 from c where n < 100) select twice(sum(n * n)) from c");
    sum = sum * 31 + one(db, "select length(printf('%.3f %s %d', 3.14159, 'text', 42)) + json_extract('{\"a\": [1, 2, 39]}', '$.a[2]')");
    sum = sum * 31 + (one(db, "select * from nothing") == -2000) + strlen(sqlite3_errmsg(db));
    return sqlite3_close(db) == SQLITE_OK ? sum : -4;
}

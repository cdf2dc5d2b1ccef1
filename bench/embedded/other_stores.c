/* LMDB alone, and SQLite with a write-ahead log that is synced by every transaction. */
#include "stores.h"

#include <lmdb.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/stat.h>

/* -- LMDB -- */

struct lmdb {
    MDB_env *env;
    MDB_dbi table;
    MDB_txn *txn;     /* puts that are not committed yet; NULL: none */
    MDB_txn *reading; /* used again and again */
};

static void lmdb_check(int code, const char *what)
{
    if (code != MDB_SUCCESS)
        fprintf(stderr, "%s\n", mdb_strerror(code));
    must(code == MDB_SUCCESS, what);
}

static void *lmdb_open(const char *place)
{
    struct lmdb *lmdb = calloc(1, sizeof(*lmdb));
    MDB_txn *txn;
    must(lmdb, "memory");
    mkdir(place, 0700);
    lmdb_check(mdb_env_create(&lmdb->env), "mdb_env_create");
    lmdb_check(mdb_env_set_mapsize(lmdb->env, (size_t)8 << 30), "mdb_env_set_mapsize");
    lmdb_check(mdb_env_set_maxreaders(lmdb->env, 512), "mdb_env_set_maxreaders");
    lmdb_check(mdb_env_open(lmdb->env, place, MDB_NOTLS, 0600), "mdb_env_open");
    lmdb_check(mdb_txn_begin(lmdb->env, NULL, 0, &txn), "mdb_txn_begin");
    lmdb_check(mdb_dbi_open(txn, NULL, 0, &lmdb->table), "mdb_dbi_open");
    lmdb_check(mdb_txn_commit(txn), "mdb_txn_commit");
    return lmdb;
}

static void *lmdb_join(void *arg)
{
    struct lmdb *lmdb = calloc(1, sizeof(*lmdb));
    must(lmdb, "memory");
    *lmdb = *(struct lmdb *)arg;
    lmdb->txn = lmdb->reading = NULL;
    return lmdb;
}

static void lmdb_leave(void *arg)
{
    struct lmdb *lmdb = arg;
    if (lmdb->reading)
        mdb_txn_abort(lmdb->reading);
    free(lmdb);
}

static void lmdb_close(void *arg)
{
    MDB_env *env = ((struct lmdb *)arg)->env;
    lmdb_leave(arg);
    mdb_env_close(env);
}

/* A copy of the value, as the others give one. */
static void lmdb_get(void *arg, const char *key)
{
    struct lmdb *lmdb = arg;
    MDB_val name = {KEY_BYTES, (void *)key}, value;
    char copy[VALUE_BYTES];
    if (lmdb->reading)
        lmdb_check(mdb_txn_renew(lmdb->reading), "mdb_txn_renew");
    else
        lmdb_check(mdb_txn_begin(lmdb->env, NULL, MDB_RDONLY, &lmdb->reading), "mdb_txn_begin");
    lmdb_check(mdb_get(lmdb->reading, lmdb->table, &name, &value), "mdb_get");
    memcpy(copy, value.mv_data, sizeof(copy));
    must(copy[0] != 0, "a value");
    mdb_txn_reset(lmdb->reading);
}

static void lmdb_put(void *arg, const char *key, const char *value, bool commit)
{
    struct lmdb *lmdb = arg;
    MDB_val name = {KEY_BYTES, (void *)key}, bytes = {VALUE_BYTES, (void *)value};
    if (!lmdb->txn)
        lmdb_check(mdb_txn_begin(lmdb->env, NULL, 0, &lmdb->txn), "mdb_txn_begin");
    lmdb_check(mdb_put(lmdb->txn, lmdb->table, &name, &bytes, 0), "mdb_put");
    if (!commit)
        return;
    lmdb_check(mdb_txn_commit(lmdb->txn), "mdb_txn_commit");
    lmdb->txn = NULL;
}

const struct store_ops lmdb_store = {lmdb_open,  lmdb_close, lmdb_join,
                                     lmdb_leave, lmdb_get,   lmdb_put};

/* -- SQLite -- */

struct sqlite {
    sqlite3 *db;
    sqlite3_stmt *get, *put, *begin, *commit;
    bool is_open; /* a transaction */
    char path[4096];
};

static void sqlite_check(struct sqlite *s, int code, const char *what)
{
    bool good = code == SQLITE_OK || code == SQLITE_DONE || code == SQLITE_ROW;
    if (!good)
        fprintf(stderr, "%s\n", sqlite3_errmsg(s->db));
    must(good, what);
}

static void sqlite_do(struct sqlite *s, const char *text)
{
    sqlite_check(s, sqlite3_exec(s->db, text, NULL, NULL, NULL), text);
}

static sqlite3_stmt *prepare(struct sqlite *s, const char *text)
{
    sqlite3_stmt *statement;
    sqlite_check(s, sqlite3_prepare_v2(s->db, text, -1, &statement, NULL), text);
    return statement;
}

static struct sqlite *connect_to(const char *path)
{
    struct sqlite *s = calloc(1, sizeof(*s));
    must(s, "memory");
    snprintf(s->path, sizeof(s->path), "%s", path);
    sqlite_check(s, sqlite3_open(path, &s->db), "sqlite3_open");
    sqlite3_busy_timeout(s->db, 60000);
    sqlite_do(s, "PRAGMA journal_mode=WAL");
    sqlite_do(s, "PRAGMA synchronous=FULL");
    sqlite_do(s, "CREATE TABLE IF NOT EXISTS kv (key BLOB PRIMARY KEY, value BLOB) WITHOUT ROWID");
    s->get = prepare(s, "SELECT value FROM kv WHERE key = ?");
    s->put = prepare(s, "INSERT OR REPLACE INTO kv VALUES (?, ?)");
    s->begin = prepare(s, "BEGIN IMMEDIATE");
    s->commit = prepare(s, "COMMIT");
    return s;
}

static void *sqlite_open(const char *place)
{
    char path[4096];
    mkdir(place, 0700);
    snprintf(path, sizeof(path), "%s/db", place);
    return connect_to(path);
}

static void *sqlite_join(void *arg)
{
    return connect_to(((struct sqlite *)arg)->path);
}

static void sqlite_close(void *arg)
{
    struct sqlite *s = arg;
    sqlite3_finalize(s->get);
    sqlite3_finalize(s->put);
    sqlite3_finalize(s->begin);
    sqlite3_finalize(s->commit);
    sqlite3_close(s->db);
    free(s);
}

static void step(struct sqlite *s, sqlite3_stmt *statement, const char *what)
{
    sqlite_check(s, sqlite3_step(statement), what);
    sqlite3_reset(statement);
}

static void sqlite_get(void *arg, const char *key)
{
    struct sqlite *s = arg;
    char copy[VALUE_BYTES];
    sqlite3_bind_blob(s->get, 1, key, KEY_BYTES, SQLITE_STATIC);
    must(sqlite3_step(s->get) == SQLITE_ROW, "a get");
    memcpy(copy, sqlite3_column_blob(s->get, 0), sizeof(copy));
    must(copy[0] != 0, "a value");
    sqlite3_reset(s->get);
}

static void sqlite_put(void *arg, const char *key, const char *value, bool commit)
{
    struct sqlite *s = arg;
    if (!s->is_open)
        step(s, s->begin, "BEGIN");
    sqlite3_bind_blob(s->put, 1, key, KEY_BYTES, SQLITE_STATIC);
    sqlite3_bind_blob(s->put, 2, value, VALUE_BYTES, SQLITE_STATIC);
    step(s, s->put, "INSERT");
    s->is_open = !commit;
    if (commit)
        step(s, s->commit, "COMMIT");
}

const struct store_ops sqlite_store = {sqlite_open,  sqlite_close, sqlite_join,
                                       sqlite_close, sqlite_get,   sqlite_put};

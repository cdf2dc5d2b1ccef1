/* LMDB, as the memory sanitizer has to see it: keys and values that are stored must be defined, and
 * what it returns is. */
#include <lmdb.h>
#include <sanitizer/msan_interface.h>

/* Names that the linker makes from LMDB's. */
#define REAL(name) __real_##name
#define WRAP(name) __wrap_##name

int REAL(mdb_env_create)(MDB_env **ret_env);
int WRAP(mdb_env_create)(MDB_env **ret_env);
int REAL(mdb_env_get_fd)(MDB_env *env, mdb_filehandle_t *ret_fd);
int WRAP(mdb_env_get_fd)(MDB_env *env, mdb_filehandle_t *ret_fd);
int REAL(mdb_txn_begin)(MDB_env *env, MDB_txn *parent, unsigned flags, MDB_txn **ret_txn);
int WRAP(mdb_txn_begin)(MDB_env *env, MDB_txn *parent, unsigned flags, MDB_txn **ret_txn);
int REAL(mdb_env_open)(MDB_env *env, const char *path, unsigned flags, mdb_mode_t mode);
int WRAP(mdb_env_open)(MDB_env *env, const char *path, unsigned flags, mdb_mode_t mode);
int REAL(mdb_txn_commit)(MDB_txn *txn);
int WRAP(mdb_txn_commit)(MDB_txn *txn);
int REAL(mdb_txn_renew)(MDB_txn *txn);
int WRAP(mdb_txn_renew)(MDB_txn *txn);
int REAL(mdb_dbi_open)(MDB_txn *txn, const char *name, unsigned flags, MDB_dbi *ret_dbi);
int WRAP(mdb_dbi_open)(MDB_txn *txn, const char *name, unsigned flags, MDB_dbi *ret_dbi);
int REAL(mdb_cursor_open)(MDB_txn *txn, MDB_dbi dbi, MDB_cursor **ret_cursor);
int WRAP(mdb_cursor_open)(MDB_txn *txn, MDB_dbi dbi, MDB_cursor **ret_cursor);
int REAL(mdb_cursor_get)(MDB_cursor *cursor, MDB_val *key, MDB_val *value, MDB_cursor_op op);
int WRAP(mdb_cursor_get)(MDB_cursor *cursor, MDB_val *key, MDB_val *value, MDB_cursor_op op);
int REAL(mdb_cursor_put)(MDB_cursor *cursor, MDB_val *key, MDB_val *value, unsigned flags);
int WRAP(mdb_cursor_put)(MDB_cursor *cursor, MDB_val *key, MDB_val *value, unsigned flags);
int REAL(mdb_get)(MDB_txn *txn, MDB_dbi dbi, MDB_val *key, MDB_val *value);
int WRAP(mdb_get)(MDB_txn *txn, MDB_dbi dbi, MDB_val *key, MDB_val *value);
int REAL(mdb_put)(MDB_txn *txn, MDB_dbi dbi, MDB_val *key, MDB_val *value, unsigned flags);
int WRAP(mdb_put)(MDB_txn *txn, MDB_dbi dbi, MDB_val *key, MDB_val *value, unsigned flags);
int REAL(mdb_del)(MDB_txn *txn, MDB_dbi dbi, MDB_val *key, MDB_val *value);
int WRAP(mdb_del)(MDB_txn *txn, MDB_dbi dbi, MDB_val *key, MDB_val *value);

/* A call of LMDB. What it passes to the C library, pages for example, looks undefined. */
#define CALL(name, ...)                             \
    ({                                              \
        __msan_scoped_disable_interceptor_checks(); \
        int code_ = __real_##name(__VA_ARGS__);     \
        __msan_scoped_enable_interceptor_checks();  \
        code_;                                      \
    })

static void must_be_defined(const MDB_val *bytes)
{
    __msan_check_mem_is_initialized(bytes, sizeof(*bytes));
    __msan_check_mem_is_initialized(bytes->mv_data, bytes->mv_size);
}

static void is_defined(const MDB_val *bytes)
{
    __msan_unpoison(bytes, sizeof(*bytes));
    __msan_unpoison(bytes->mv_data, bytes->mv_size);
}

static int written(int code, const void *result, size_t bytes)
{
    __msan_unpoison(result, bytes);
    return code;
}

int WRAP(mdb_env_create)(MDB_env **ret_env)
{
    return written(CALL(mdb_env_create, ret_env), ret_env, sizeof(*ret_env));
}

int WRAP(mdb_env_get_fd)(MDB_env *env, mdb_filehandle_t *ret_fd)
{
    return written(CALL(mdb_env_get_fd, env, ret_fd), ret_fd, sizeof(*ret_fd));
}

int WRAP(mdb_txn_begin)(MDB_env *env, MDB_txn *parent, unsigned flags, MDB_txn **ret_txn)
{
    return written(CALL(mdb_txn_begin, env, parent, flags, ret_txn), ret_txn, sizeof(*ret_txn));
}

int WRAP(mdb_env_open)(MDB_env *env, const char *path, unsigned flags, mdb_mode_t mode)
{
    return CALL(mdb_env_open, env, path, flags, mode);
}

int WRAP(mdb_txn_commit)(MDB_txn *txn)
{
    return CALL(mdb_txn_commit, txn);
}

int WRAP(mdb_txn_renew)(MDB_txn *txn)
{
    return CALL(mdb_txn_renew, txn);
}

int WRAP(mdb_dbi_open)(MDB_txn *txn, const char *name, unsigned flags, MDB_dbi *ret_dbi)
{
    return written(CALL(mdb_dbi_open, txn, name, flags, ret_dbi), ret_dbi, sizeof(*ret_dbi));
}

int WRAP(mdb_cursor_open)(MDB_txn *txn, MDB_dbi dbi, MDB_cursor **ret_cursor)
{
    return written(CALL(mdb_cursor_open, txn, dbi, ret_cursor), ret_cursor, sizeof(*ret_cursor));
}

int WRAP(mdb_cursor_get)(MDB_cursor *cursor, MDB_val *key, MDB_val *value, MDB_cursor_op op)
{
    int code = CALL(mdb_cursor_get, cursor, key, value, op);
    if (code == MDB_SUCCESS) {
        is_defined(key);
        is_defined(value);
    }
    return code;
}

int WRAP(mdb_cursor_put)(MDB_cursor *cursor, MDB_val *key, MDB_val *value, unsigned flags)
{
    must_be_defined(key);
    must_be_defined(value);
    return CALL(mdb_cursor_put, cursor, key, value, flags);
}

int WRAP(mdb_get)(MDB_txn *txn, MDB_dbi dbi, MDB_val *key, MDB_val *value)
{
    must_be_defined(key);
    int code = CALL(mdb_get, txn, dbi, key, value);
    if (code == MDB_SUCCESS)
        is_defined(value);
    return code;
}

int WRAP(mdb_put)(MDB_txn *txn, MDB_dbi dbi, MDB_val *key, MDB_val *value, unsigned flags)
{
    must_be_defined(key);
    must_be_defined(value);
    return CALL(mdb_put, txn, dbi, key, value, flags);
}

int WRAP(mdb_del)(MDB_txn *txn, MDB_dbi dbi, MDB_val *key, MDB_val *value)
{
    must_be_defined(key);
    return CALL(mdb_del, txn, dbi, key, value);
}

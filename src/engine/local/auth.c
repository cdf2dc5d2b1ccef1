#include "engine/local/auth.h"

#include "base/xalloc.h"

void local_auth_init(struct local_auth *auth)
{
    *auth = (struct local_auth){0};
    auth_book_init(&auth->book);
}

void local_auth_fini(struct local_auth *auth)
{
    auth_book_fini(&auth->book);
}

/* -- Rows -- */

static const enum row_table row_tables[AUTH_TABLES] = {
    [AUTH_TABLE_USERS] = ROW_USER,
    [AUTH_TABLE_ROLES] = ROW_ROLE,
    [AUTH_TABLE_STATE] = ROW_AUTH,
};

enum status local_auth_row(struct local_auth *auth, const struct row *row)
{
    for (int table = 0; table < AUTH_TABLES; table++) {
        if (row_tables[table] == row->table)
            return auth_book_row(&auth->book, &(struct auth_row){
                                                  .table = (enum auth_table)table,
                                                  .deleted = row->deleted,
                                                  .key = row->key,
                                                  .value = row->value,
                                              });
    }
    return ST_DAMAGED;
}

/* -- Publishing -- */

static void free_rights(void *ctx, void *object)
{
    (void)ctx;
    auth_rights_unref(object);
}

/*
 * With the next commit. That there are others is shown before: who takes the new state and then
 * looks whether its rights are the newest must not find that they are.
 */
static void publish(struct local_auth *auth)
{
    store_set_attachment(auth->store, auth_rights_ref(auth->book.rights), free_rights);
    atomic_store(&auth->shown_revision, auth_rights_revision(auth->book.rights));
    atomic_store_explicit(&auth->shown, auth->book.rights, memory_order_release);
    auth->changed = true;
}

bool local_auth_committed(struct local_auth *auth)
{
    bool changed = auth->changed;
    auth->changed = false;
    return changed;
}

void local_auth_open(struct local_auth *auth, struct store *store)
{
    auth->store = store;
    auth_book_open(&auth->book);
    publish(auth);
    enum status status = store_commit(store);
    assert(status == ST_OK); /* nothing is to be written */
    (void)local_auth_committed(auth);
}

/* -- The writer -- */

static MUST_CHECK
enum status write_rows(struct local_auth *auth, const struct auth_change *change,
                       struct arena *arena)
{
    struct row *rows = arena_calloc(arena, change->row_count, sizeof(*rows));
    if (!rows)
        return ST_NOMEM;
    for (size_t i = 0; i < change->row_count; i++) {
        const struct auth_row *row = &change->rows[i];
        rows[i] = (struct row){.table = row_tables[row->table],
                               .deleted = row->deleted,
                               .key = row->key,
                               .value = row->value};
    }
    return applier_rows(store_applier(auth->store), rows, change->row_count, NULL, 0, NULL);
}

static MUST_CHECK
enum status execute(struct local_auth *auth, struct engine_auth *op, struct arena *arena)
{
    struct auth_change change;
    TRY(auth_book_decide(&auth->book, op, arena, &change));
    if (change.row_count)
        TRY(write_rows(auth, &change, arena));
    auth_book_take(&auth->book, op, &change);
    if (change.row_count)
        publish(auth);
    return ST_OK;
}

void local_auth_execute(struct local_auth *auth, struct engine_auth *op)
{
    struct arena rows; /* bounded by AUTH_STORE_BYTES_MAX, and gone when they are written */
    arena_init(&rows, NULL, 0, SIZE_MAX);
    op->op.status = execute(auth, op, &rows);
    arena_fini(&rows);
    op->op.revision = store_applier(auth->store)->revision;
}

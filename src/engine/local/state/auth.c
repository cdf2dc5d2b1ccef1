#include "engine/local/state/auth.h"

#include "base/xalloc.h"

void local_auth_init(struct local_auth *auth)
{
    *auth = (struct local_auth){0};
    auth_state_init(&auth->state);
}

void local_auth_fini(struct local_auth *auth)
{
    auth_state_fini(&auth->state);
}

/* -- Rows -- */

static const enum row_table row_tables[AUTH_TABLES] = {
    [AUTH_TABLE_USERS] = ROW_USER,
    [AUTH_TABLE_ROLES] = ROW_ROLE,
    [AUTH_TABLE_STATE] = ROW_AUTH,
};

enum status local_auth_load_row(struct local_auth *auth, const struct row *row)
{
    for (int table = 0; table < AUTH_TABLES; table++) {
        if (row_tables[table] == row->table)
            return auth_state_load_row(&auth->state, &(struct auth_row){
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
 * Published with the next commit. `newest` changes before that: a thread that loads the new state
 * and then compares its old rights with `newest` must find them different.
 */
static void publish(struct local_auth *auth)
{
    store_set_attachment(auth->store, auth_rights_ref(auth->state.rights), free_rights);
    atomic_store(&auth->newest_revision, auth_rights_revision(auth->state.rights));
    atomic_store_explicit(&auth->newest, auth->state.rights, memory_order_release);
    auth->changed = true;
}

void local_auth_open(struct local_auth *auth, struct store *store)
{
    auth->store = store;
    auth_state_open(&auth->state);
    publish(auth);
    enum status status = store_commit(store);
    assert(status == ST_OK); /* there is nothing to write */
    auth->changed = false;   /* there is no shard yet that would have to be notified */
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
    TRY(auth_state_decide(&auth->state, op, arena, &change));
    if (change.row_count)
        TRY(write_rows(auth, &change, arena));
    auth_state_commit(&auth->state, op, &change);
    if (change.row_count)
        publish(auth);
    return ST_OK;
}

void local_auth_execute(struct local_auth *auth, struct engine_auth *op)
{
    struct arena rows; /* bounded by AUTH_STORE_BYTES_MAX; freed when they are written */
    arena_init(&rows, NULL, 0, SIZE_MAX);
    op->op.status = execute(auth, op, &rows);
    arena_fini(&rows);
    op->op.revision = store_applier(auth->store)->revision;
}

/* -- Shards -- */

void local_auth_reader_load(struct local_auth_reader *reader)
{
    uint64_t pinned = epoch_pin(reader->slot);
    struct auth_rights *before = reader->rights;
    reader->rights = auth_rights_ref(local_auth_of(store_view(reader->auth->store)));
    epoch_unpin(reader->slot, pinned);
    if (before && before != reader->rights)
        engine_auth_notify(reader->shard);
    auth_rights_unref(before);
}

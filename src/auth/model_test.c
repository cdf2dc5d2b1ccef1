/*
 * Random changes of users, roles and permissions, compared with a model of tables and flags: every
 * change has the model's status, and a random, nested transaction is allowed or denied as the model
 * decides it, key by key.
 *
 * Keys in permissions have one or two letters out of three; the model tries all keys of up to three
 * bytes, of these letters and NUL. Between any two ends of permissions there is one of these keys,
 * so that a range is allowed if and only if all of these keys in it are.
 */
#include "auth/check.h"
#include "auth/fixture_test.h"
#include "base/random.h"

enum { USERS = 4, ROLES = 4, LEASES = 3, LETTERS = 3, UNIVERSE_MAX = 128, PERMISSIONS_MAX = 64 };

static const char *const user_names[USERS] = {"root", "u1", "u2", "u3"};
static const char *const role_names[ROLES] = {"root", "r1", "r2", "r3"};

struct key {
    char bytes[4];
    size_t len;
};

struct permission {
    int32_t type;
    char key[3];
    char end[3]; /* "*": without end */
};

struct model {
    bool enabled;
    uint64_t revision;
    bool user[USERS], role[ROLES], has[USERS][ROLES];
    struct permission permissions[ROLES][PERMISSIONS_MAX];
    size_t permission_count[ROLES];
    struct key leases[LEASES][2]; /* the keys attached to each; the last lease has none */
    struct key universe[UNIVERSE_MAX];
    size_t universe_count;
};

static struct slice key_slice(const struct key *key)
{
    return slice_of(key->bytes, key->len);
}

static void universe_make(struct model *m)
{
    static const char letters[] = {0, 'a', 'b', 'c'};
    for (size_t len = 1, total = 4; len <= 3; len++, total *= 4) {
        for (size_t n = 0; n < total; n++) {
            struct key *key = &m->universe[m->universe_count++];
            key->len = len;
            for (size_t i = 0, left = n; i < len; i++, left /= 4)
                key->bytes[i] = letters[left % 4];
        }
    }
}

/* Whether [key, end) contains the key `one`; an end has the same meaning as in requests. */
static bool range_has(struct slice key, struct slice end, struct slice one)
{
    if (end.len == 0)
        return slice_equal(key, one);
    bool open = end.len == 1 && end.ptr[0] == 0;
    return slice_compare(key, one) <= 0 && (open || slice_compare(one, end) < 0);
}

static bool key_allowed(const struct model *m, int user, enum auth_access access, struct slice one)
{
    for (int r = 0; r < ROLES; r++) {
        for (size_t i = 0; m->has[user][r] && i < m->permission_count[r]; i++) {
            const struct permission *p = &m->permissions[r][i];
            bool gives = p->type == PB_PERMISSION_TYPE_READWRITE ||
                         p->type == (access == AUTH_READ ? PB_PERMISSION_TYPE_READ
                                                         : PB_PERMISSION_TYPE_WRITE);
            if (gives && range_has(TEXT(p->key), end_of(p->end), one))
                return true;
        }
    }
    return false;
}

/* All rights that a request needs. */
struct question {
    const struct model *model;
    int user; /* -1: unknown user */
    bool denied;
    size_t allowed_count, denied_count; /* over all transactions; neither may be zero */
};

static void need(struct question *q, enum auth_access access, struct slice key, struct slice end)
{
    const struct model *m = q->model;
    if (q->user < 0 || !m->user[q->user]) {
        q->denied = true;
        return;
    }
    if (m->has[q->user][0])
        return;
    for (size_t i = 0; i < m->universe_count; i++) {
        struct slice one = key_slice(&m->universe[i]);
        if (range_has(key, end, one) && !key_allowed(m, q->user, access, one))
            q->denied = true;
    }
}

static void need_lease(struct question *q, int64_t lease)
{
    for (size_t i = 0; lease > 0 && lease < LEASES && i < 2; i++)
        need(q, AUTH_WRITE, key_slice(&q->model->leases[lease - 1][i]), SLICE_EMPTY);
}

static enum status each_key(void *ctx, int64_t lease, uint64_t whose, auth_key_fn visit,
                            void *visit_ctx)
{
    const struct model *m = ctx;
    (void)whose;
    for (size_t i = 0; lease > 0 && lease < LEASES && i < 2; i++)
        TRY(visit(visit_ctx, key_slice(&m->leases[lease - 1][i])));
    return ST_OK;
}

/* -- Changes -- */

static void random_text(struct random *random, char text[3])
{
    text[0] = (char)('a' + random_below(random, LETTERS));
    text[1] = random_chance(random, 1, 2) ? (char)('a' + random_below(random, LETTERS)) : 0;
    text[2] = 0;
}

static void random_end(struct random *random, char text[3])
{
    switch (random_below(random, 4)) {
    case 0:
        text[0] = 0;
        break;
    case 1:
        text[0] = '*';
        text[1] = 0;
        break;
    default:
        random_text(random, text);
    }
}

static size_t permission_find(const struct model *m, int r, const struct permission *p)
{
    size_t i = 0;
    while (i < m->permission_count[r] && (strcmp(m->permissions[r][i].key, p->key) != 0 ||
                                          strcmp(m->permissions[r][i].end, p->end) != 0))
        i++;
    return i;
}

static enum status model_grant(struct model *m, int r, const struct permission *p)
{
    bool bounded = p->end[0] && strcmp(p->end, "*") != 0;
    if (bounded && strcmp(p->key, p->end) >= 0)
        return ST_INVALID_AUTH_MGMT;
    if (!m->role[r])
        return ST_ROLE_NOT_FOUND;
    size_t at = permission_find(m, r, p);
    assert_true(at < PERMISSIONS_MAX);
    m->permissions[r][at] = *p;
    m->permission_count[r] += at == m->permission_count[r];
    m->revision++;
    return ST_OK;
}

static enum status model_revoke(struct model *m, int r, const struct permission *p)
{
    size_t at = permission_find(m, r, p);
    if (!m->role[r])
        return ST_ROLE_NOT_FOUND;
    if (at == m->permission_count[r])
        return ST_PERMISSION_NOT_GRANTED;
    m->permissions[r][at] = m->permissions[r][--m->permission_count[r]];
    m->revision++;
    return ST_OK;
}

static enum status model_user_delete(struct model *m, int u)
{
    if (m->enabled && u == 0)
        return ST_INVALID_AUTH_MGMT;
    if (!m->user[u])
        return ST_USER_NOT_FOUND;
    m->user[u] = false;
    memset(m->has[u], 0, sizeof(m->has[u]));
    m->revision++;
    return ST_OK;
}

static enum status model_role_delete(struct model *m, int r)
{
    if (m->enabled && r == 0)
        return ST_INVALID_AUTH_MGMT;
    if (!m->role[r])
        return ST_ROLE_NOT_FOUND;
    m->role[r] = false;
    m->permission_count[r] = 0;
    for (int u = 0; u < USERS; u++)
        m->has[u][r] = false;
    m->revision++;
    return ST_OK;
}

static enum status model_user_grant(struct model *m, int u, int r)
{
    if (!m->user[u])
        return ST_USER_NOT_FOUND;
    if (r != 0 && !m->role[r])
        return ST_ROLE_NOT_FOUND;
    m->revision += !m->has[u][r];
    m->has[u][r] = true;
    return ST_OK;
}

static enum status model_user_revoke(struct model *m, int u, int r)
{
    if (m->enabled && u == 0 && r == 0)
        return ST_INVALID_AUTH_MGMT;
    if (!m->user[u])
        return ST_USER_NOT_FOUND;
    if (!m->has[u][r])
        return ST_ROLE_NOT_GRANTED;
    m->has[u][r] = false;
    m->revision++;
    return ST_OK;
}

static enum status model_add(struct model *m, bool *there, enum status exists)
{
    if (*there)
        return exists;
    *there = true;
    m->revision++;
    return ST_OK;
}

static enum status model_enable(struct model *m)
{
    if (!m->enabled && !m->user[0])
        return ST_ROOT_USER_NOT_EXIST;
    if (!m->enabled && !m->has[0][0])
        return ST_ROOT_ROLE_NOT_EXIST;
    m->enabled = true;
    return ST_OK;
}

static void change(struct world *w, struct model *m, struct random *random)
{
    int u = (int)random_below(random, USERS), r = (int)random_below(random, ROLES);
    const char *user = user_names[u], *role = role_names[r];
    struct permission p = {.type = (int32_t)random_below(random, 3)};
    random_text(random, p.key);
    random_end(random, p.end);
    switch (random_below(random, 40)) {
    case 0:
        m->revision += m->enabled;
        m->enabled = false;
        OK(disable(w));
        break;
    case 1:
        assert_int_equal(user_delete(w, user), model_user_delete(m, u));
        break;
    case 2:
        assert_int_equal(role_delete(w, role), model_role_delete(m, r));
        break;
    case 3 ... 6:
        assert_int_equal(enable(w), model_enable(m));
        break;
    case 7 ... 11:
        assert_int_equal(user_add(w, user), model_add(m, &m->user[u], ST_USER_ALREADY_EXIST));
        break;
    case 12 ... 16:
        assert_int_equal(role_add(w, role), model_add(m, &m->role[r], ST_ROLE_ALREADY_EXIST));
        break;
    case 17 ... 21:
        assert_int_equal(user_grant(w, user, role), model_user_grant(m, u, r));
        break;
    case 22 ... 24:
        assert_int_equal(user_revoke(w, user, role), model_user_revoke(m, u, r));
        break;
    case 25 ... 33:
        assert_int_equal(role_grant(w, role, p.type, p.key, p.end), model_grant(m, r, &p));
        break;
    default:
        assert_int_equal(role_revoke(w, role, p.key, p.end), model_revoke(m, r, &p));
    }
    assert_int_equal(auth_store_revision(w->store), m->revision);
    assert_int_equal(auth_store_enabled(w->store), m->enabled);
}

/* -- Questions -- */

static struct slice copy_text(struct arena *arena, const char *text)
{
    struct slice copy;
    OK(arena_dup(arena, end_of(text), &copy));
    return copy;
}

static struct slice random_key(struct arena *arena, struct random *random)
{
    char text[3];
    random_text(random, text);
    return copy_text(arena, text);
}

/* No end, everything after, or a later key; empty ranges are tested separately. */
static struct slice random_key_end(struct arena *arena, struct random *random, struct slice key)
{
    char text[3];
    do
        random_end(random, text);
    while (text[0] && text[0] != '*' && slice_compare(key, TEXT(text)) >= 0);
    return copy_text(arena, text);
}

static struct pb_txn_request *random_txn(struct arena *arena, struct random *random,
                                         struct question *q, int depth);

static struct pb_request_op random_op(struct arena *arena, struct random *random,
                                      struct question *q, int depth)
{
    struct pb_request_op op = {0};
    struct slice key = random_key(arena, random), end = random_key_end(arena, random, key);
    bool prev = random_chance(random, 1, 3);
    switch (random_below(random, depth ? 4 : 3)) {
    case 0:
        op.request_case = PB_REQUEST_OP_REQUEST_RANGE;
        op.request_range = arena_calloc(arena, 1, sizeof(*op.request_range));
        *op.request_range = (struct pb_range_request){.key = key, .range_end = end};
        need(q, AUTH_READ, key, end);
        break;
    case 1:
        op.request_case = PB_REQUEST_OP_REQUEST_PUT;
        op.request_put = arena_calloc(arena, 1, sizeof(*op.request_put));
        *op.request_put = (struct pb_put_request){
            .key = key, .prev_kv = prev, .lease = (int64_t)random_below(random, LEASES + 2)};
        need(q, AUTH_WRITE, key, SLICE_EMPTY);
        need_lease(q, op.request_put->lease);
        if (prev)
            need(q, AUTH_READ, key, SLICE_EMPTY);
        break;
    case 2:
        op.request_case = PB_REQUEST_OP_REQUEST_DELETE_RANGE;
        op.request_delete_range = arena_calloc(arena, 1, sizeof(*op.request_delete_range));
        *op.request_delete_range =
            (struct pb_delete_range_request){.key = key, .range_end = end, .prev_kv = prev};
        need(q, AUTH_WRITE, key, end);
        if (prev)
            need(q, AUTH_READ, key, end);
        break;
    default:
        op.request_case = PB_REQUEST_OP_REQUEST_TXN;
        op.request_txn = random_txn(arena, random, q, depth - 1);
    }
    return op;
}

static struct pb_txn_request *random_txn(struct arena *arena, struct random *random,
                                         struct question *q, int depth)
{
    struct pb_txn_request *txn = arena_calloc(arena, 1, sizeof(*txn));
    txn->compare_count = random_below(random, 2);
    txn->success_count = random_below(random, 3);
    txn->failure_count = random_below(random, 2);
    txn->compare = arena_calloc(arena, 2, sizeof(*txn->compare));
    txn->success = arena_calloc(arena, 3, sizeof(*txn->success));
    txn->failure = arena_calloc(arena, 3, sizeof(*txn->failure));
    for (size_t i = 0; i < txn->compare_count; i++) {
        struct slice key = random_key(arena, random), end = random_key_end(arena, random, key);
        txn->compare[i] = (struct pb_compare){.key = key, .range_end = end};
        need(q, AUTH_READ, key, end);
    }
    for (size_t i = 0; i < txn->success_count; i++)
        txn->success[i] = random_op(arena, random, q, depth);
    for (size_t i = 0; i < txn->failure_count; i++)
        txn->failure[i] = random_op(arena, random, q, depth);
    return txn;
}

static void ask(struct model *m, struct random *random, const struct auth_rights *rights,
                struct question *q)
{
    struct arena arena;
    arena_init(&arena, NULL, 0, 1 << 20);
    q->denied = false;
    q->user = (int)random_below(random, USERS + 1) - 1;
    struct auth_asker asker = {
        .rights = rights,
        .principal = {.user = TEXT(q->user < 0 ? "unknown" : user_names[q->user]),
                      .revision = m->revision},
        .leases = {m, each_key}};
    bool nobody = random_chance(random, 1, 20), old = !nobody && random_chance(random, 1, 20);
    asker.principal.revision -= old;
    if (nobody)
        asker.principal = (struct auth_principal){0};
    struct pb_request_op op = random_op(&arena, random, q, 3);
    struct pb_txn_request txn = {.success = &op, .success_count = 1};
    struct pb_compare compare = {.key = TEXT("a")}; /* so that there is always one key to check */
    txn.compare = &compare;
    txn.compare_count = 1;
    need(q, AUTH_READ, compare.key, SLICE_EMPTY);

    enum status expected = q->denied ? ST_PERMISSION_DENIED : ST_OK;
    if (nobody)
        expected = ST_USER_EMPTY;
    if (old)
        expected = asker.principal.revision ? ST_AUTH_OLD_REVISION : ST_USER_EMPTY;
    if (!m->enabled)
        expected = ST_OK;
    assert_int_equal(auth_check_txn(&asker, &txn), expected);
    bool counts = m->enabled && !nobody && !old && q->user > 0 && !m->has[q->user][0];
    q->allowed_count += counts && expected == ST_OK;
    q->denied_count += counts && expected != ST_OK;
    arena_fini(&arena);
}

static void walk(uint64_t seed, struct question *q)
{
    struct world *w = world_new();
    struct model *m = calloc(1, sizeof(*m));
    struct random random;
    random_init(&random, seed);
    m->revision = 1;
    universe_make(m);
    for (size_t i = 0; i < COUNT_OF(m->leases); i++) {
        for (size_t k = 0; k < 2; k++) {
            random_text(&random, m->leases[i][k].bytes);
            m->leases[i][k].len = strlen(m->leases[i][k].bytes);
        }
    }
    q->model = m;
    struct auth_rights *grown = auth_rights_new(w->store); /* each is made from the previous one */
    for (int step = 0; step < 600; step++) {
        w->change = (struct auth_change){0};
        change(w, m, &random);
        AUTO(auth_rights_unrefp) struct auth_rights *before = grown;
        AUTO(auth_rights_unrefp) struct auth_rights *rights = auth_rights_new(w->store);
        grown = auth_rights_after(before, w->store, w->change.rows, w->change.row_count);
        auth_rights_check_order(rights);
        auth_rights_check_order(grown);
        auth_rights_check_order(before);
        auth_store_check(w->store);
        for (int i = 0; i < 4; i++)
            ask(m, &random, i % 2 ? rights : grown, q);
    }
    auth_rights_unref(grown);
    free(m);
    world_free(w);
}

static void every_allow_and_deny_agrees_with_the_model(void **state)
{
    (void)state;
    struct question q = {0};
    for (uint64_t seed = 1; seed <= 12; seed++)
        walk(seed, &q);
    /* A model that denies everything would often agree. */
    assert_true(q.allowed_count > 100);
    assert_true(q.denied_count > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allow_and_deny_agrees_with_the_model)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

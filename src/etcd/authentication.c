#include "etcd/authentication.h"

#include "auth/method.h"
#include "auth/token/issuer.h"
#include "base/clock.h"
#include "base/container/hash_map.h"
#include "base/random.h"
#include "base/xalloc.h"
#include "engine/auth.h"
#include "etcd/face.h"

#include <stdlib.h>

enum {
    SLOTS = 1024, /* remembered at a time; a power of two */
    SCRATCH_BYTES = 512,
    SCRATCH_BYTES_MAX = 64 << 10, /* of memory to find out whose a token is */
};

#define OF_NOW UINT64_MAX

/* A token that was looked up. */
struct slot {
    uint8_t *bytes; /* owned: token, then name; NULL: nothing is remembered */
    size_t token_len, user_len;
    uint64_t revision; /* OF_NOW: that of the rights, whatever it is */
    uint64_t endings;  /* when it was looked up */
    int64_t until_ns;
};

struct etcd_callers {
    const struct etcd_config *config;
    struct engine_shard *shard;
    struct grpc_guard guard;
    const struct grpc_row *rows;        /* of the services */
    const struct auth_method **methods; /* owned; of each row. NULL: it is to be refused */
    struct hash_map hashing;            /* stays empty: it has the secret */
    struct slot slots[SLOTS];
};

/* -- Tokens -- */

static bool slot_holds(const struct etcd_callers *callers, const struct slot *slot,
                       struct slice token, int64_t now_ns)
{
    return slot->bytes && slice_equal(slice_of(slot->bytes, slot->token_len), token) &&
           now_ns < slot->until_ns && slot->endings == auth_issuer_endings(callers->config->issuer);
}

static void slot_fill(struct slot *slot, struct slice token, struct slice user)
{
    free(slot->bytes);
    slot->bytes = xmalloc(token.len + user.len);
    slot->token_len = token.len;
    slot->user_len = user.len;
    slice_copy(slot->bytes, token);
    slice_copy(slot->bytes + token.len, user);
}

static MUST_CHECK
enum status look_up(struct etcd_callers *callers, struct slot *slot, struct slice token,
                    int64_t now_ns)
{
    struct auth_issuer *issuer = callers->config->issuer;
    uint8_t scratch[SCRATCH_BYTES];
    struct arena arena;
    struct auth_principal found = {0};
    struct auth_moment now = {now_ns, clock_real_ns(clock_system()) / NS_PER_S};
    /* Before: what ends meanwhile is not remembered for long. */
    uint64_t endings = auth_issuer_endings(issuer);
    arena_init(&arena, scratch, sizeof(scratch), SCRATCH_BYTES_MAX);
    enum status status = auth_issuer_find(issuer, token, OF_NOW, now, &arena, &found);
    if (status == ST_OK) {
        slot_fill(slot, token, found.user);
        slot->revision = found.revision;
        slot->endings = endings;
        slot->until_ns = now_ns + auth_issuer_remember_ns(issuer);
    }
    arena_fini(&arena);
    return status;
}

static MUST_CHECK
enum status find_token(struct etcd_callers *callers, struct slice token, uint64_t revision,
                       int64_t now_ns, struct auth_principal *ret_principal)
{
    struct slice bearer = SLICE_LITERAL("Bearer ");
    if (slice_has_prefix(token, bearer))
        token = slice_sub(token, bearer.len, token.len - bearer.len);
    if (token.len == 0 || token.len > AUTH_JWT_BYTES_MAX || !callers->config->issuer)
        return ST_INVALID_AUTH_TOKEN;
    struct slot *slot = &callers->slots[hash_map_hash(&callers->hashing, token) % SLOTS];
    if (!slot_holds(callers, slot, token, now_ns))
        TRY(look_up(callers, slot, token, now_ns));
    *ret_principal = (struct auth_principal){
        .user = slice_of(slot->bytes + slot->token_len, slot->user_len),
        .revision = slot->revision == OF_NOW ? revision : slot->revision,
    };
    return ST_OK;
}

/* -- Certificates -- */

/*
 * Only of a client that speaks gRPC to us. A gateway that forwards others' requests shows its own
 * certificate with them; it says so, and ours has no connection at all.
 */
static bool has_certificate(const struct etcd_callers *callers, const struct grpc_call *call,
                            struct slice *ret_name)
{
    struct slice forwarded;
    const char *name = grpc_call_peer_name(call);
    if (!callers->config->names_from_certificates || !name ||
        grpc_call_metadata(call, SLICE_LITERAL("grpcgateway-accept"), &forwarded))
        return false;
    *ret_name = slice_from_text(name);
    return true;
}

enum status etcd_callers_find(struct etcd_callers *callers, const struct grpc_call *call,
                              struct auth_principal *ret_principal)
{
    const struct auth_rights *rights = engine_auth_rights(callers->shard);
    struct auth_principal nobody = {0};
    struct slice token, name;
    *ret_principal = nobody;
    if (!auth_rights_enabled(rights))
        return ST_OK;
    uint64_t revision = auth_rights_revision(rights);
    if (grpc_call_metadata(call, SLICE_LITERAL("token"), &token) ||
        grpc_call_metadata(call, SLICE_LITERAL("authorization"), &token))
        return find_token(callers, token, revision, grpc_call_now(call), ret_principal);
    if (has_certificate(callers, call, &name))
        *ret_principal = (struct auth_principal){.user = name, .revision = revision};
    return ST_OK;
}

/* -- Calls -- */

enum status etcd_call_set_principal(struct grpc_call *call, const struct auth_principal *principal)
{
    struct auth_principal *kept = grpc_call_caller(call);
    /* A stream may ask for years: its user's name is kept once. */
    if (!kept || !slice_equal(kept->user, principal->user)) {
        struct slice user;
        kept = arena_calloc(grpc_call_arena(call), 1, sizeof(*kept));
        if (!kept)
            return ST_NOMEM;
        TRY(arena_dup(grpc_call_arena(call), principal->user, &user));
        kept->user = user;
        grpc_call_set_caller(call, kept);
    }
    kept->revision = principal->revision;
    return ST_OK;
}

struct auth_principal etcd_call_principal(const struct grpc_call *call)
{
    const struct auth_principal *kept = grpc_call_caller(call);
    return kept ? *kept : (struct auth_principal){0};
}

struct auth_principal etcd_callers_again(struct etcd_callers *callers, struct grpc_call *call)
{
    struct auth_principal now;
    bool found = !grpc_call_ended(call) && etcd_callers_find(callers, call, &now) == ST_OK;
    if (found && now.revision && etcd_call_set_principal(call, &now) != ST_OK)
        return (struct auth_principal){0};
    return etcd_call_principal(call);
}

/* -- The guard -- */

static const struct auth_method *method_of(const struct etcd_callers *callers,
                                           const struct grpc_row *row)
{
    return callers->methods[row - callers->rows];
}

/* A client that logs in may show a token that has ended; a watch is refused by itself. */
static bool is_open(const struct etcd_callers *callers, const struct auth_method *method)
{
    return LIKELY(!auth_rights_enabled(engine_auth_rights(callers->shard))) ||
           method->need == AUTH_NEED_NOTHING || method->need == AUTH_NEED_WATCH;
}

bool etcd_callers_open_to_all(const struct etcd_callers *callers, const struct grpc_row *row)
{
    const struct auth_method *method = method_of(callers, row);
    return method && is_open(callers, method);
}

static bool find_field(const struct http_field *fields, size_t count, struct slice name,
                       struct slice *ret_value)
{
    for (size_t i = 0; i < count; i++) {
        if (slice_equal(fields[i].name, name)) {
            *ret_value = fields[i].value;
            return true;
        }
    }
    return false;
}

enum status etcd_callers_check(struct etcd_callers *callers, const struct grpc_row *row,
                               const struct http_field *fields, size_t count, int64_t now_ns)
{
    const struct auth_rights *rights = engine_auth_rights(callers->shard);
    const struct auth_method *method = method_of(callers, row);
    struct auth_principal principal = {0};
    struct slice token;
    if (!method)
        return ST_PERMISSION_DENIED;
    if (is_open(callers, method))
        return ST_OK;
    if (find_field(fields, count, SLICE_LITERAL("token"), &token) ||
        find_field(fields, count, SLICE_LITERAL("authorization"), &token))
        TRY(find_token(callers, token, auth_rights_revision(rights), now_ns, &principal));
    return auth_method_allows(method, rights, &principal);
}

static enum status admit(void *ctx, struct grpc_call *call, const struct grpc_row *row)
{
    struct etcd_callers *callers = ctx;
    const struct auth_method *method = method_of(callers, row);
    struct auth_principal principal;
    if (UNLIKELY(!method))
        return ST_PERMISSION_DENIED;
    if (is_open(callers, method))
        return ST_OK;
    TRY(etcd_callers_find(callers, call, &principal));
    TRY(auth_method_allows(method, engine_auth_rights(callers->shard), &principal));
    return etcd_call_set_principal(call, &principal);
}

struct etcd_callers *etcd_callers_new(const struct etcd_config *config, struct engine_shard *shard,
                                      struct grpc_services *services)
{
    size_t count;
    struct etcd_callers *callers = xcalloc(1, sizeof(*callers));
    callers->config = config;
    callers->shard = shard;
    callers->rows = grpc_services_rows(services, &count);
    callers->methods = xcalloc(size_max(count, 1), sizeof(*callers->methods));
    for (size_t i = 0; i < count; i++)
        callers->methods[i] = auth_method_find(callers->rows[i].path);
    hash_map_init(&callers->hashing, NULL, random_seed_system());
    callers->guard = (struct grpc_guard){.admit = admit, .ctx = callers};
    grpc_services_guard(services, &callers->guard);
    return callers;
}

void etcd_callers_free(struct etcd_callers *callers)
{
    if (!callers)
        return;
    for (size_t i = 0; i < SLOTS; i++)
        free(callers->slots[i].bytes);
    hash_map_fini(&callers->hashing);
    free(callers->methods);
    free(callers);
}

#include "etcd/shared/authenticator.h"

#include "auth/method.h"
#include "auth/token/issuer.h"
#include "base/clock.h"
#include "base/container/hash_map.h"
#include "base/random.h"
#include "base/xalloc.h"
#include "engine/engine.h"
#include "engine/forward.h"
#include "etcd/shared/config.h"

#include <stdlib.h>

enum {
    SLOTS = 1024, /* cached tokens; a power of two */
    SCRATCH_BYTES = 512,
    SCRATCH_BYTES_MAX = 64 << 10, /* limit on the memory for looking up one token */
};

/* As an auth revision: the current one, whatever it is when the token is used. */
#define OF_NOW UINT64_MAX

/* A cached token. */
struct token_slot {
    uint8_t *bytes; /* owned: the token, then the user's name; NULL: the slot is empty */
    size_t token_len, user_len;
    uint64_t revision; /* may be OF_NOW */
    uint64_t endings;  /* auth_issuer_endings() when it was looked up */
    int64_t until_ns;
};

struct authenticator {
    const struct etcd_config *config;
    struct engine_shard *shard;
    bool forwards; /* the engine's cluster knows the users; see engine_forwards */
    struct grpc_guard guard;
    const struct grpc_row *rows;        /* rows of the services */
    const struct auth_method **methods; /* owned; for each row. NULL: the method is refused */
    struct hash_map hashing;            /* stays empty; only its secret hash function is used */
    struct token_slot slots[SLOTS];
};

/* -- Tokens -- */

static bool slot_matches(const struct authenticator *authenticator, const struct token_slot *slot,
                         struct slice token, int64_t now_ns)
{
    return slot->bytes && slice_equal(slice_of(slot->bytes, slot->token_len), token) &&
           now_ns < slot->until_ns &&
           slot->endings == auth_issuer_endings(authenticator->config->issuer);
}

static void slot_fill(struct token_slot *slot, struct slice token, struct slice user)
{
    free(slot->bytes);
    slot->bytes = xmalloc(token.len + user.len);
    slot->token_len = token.len;
    slot->user_len = user.len;
    slice_copy(slot->bytes, token);
    slice_copy(slot->bytes + token.len, user);
}

static MUST_CHECK
enum status look_up(struct authenticator *authenticator, struct token_slot *slot,
                    struct slice token, int64_t now_ns)
{
    struct auth_issuer *issuer = authenticator->config->issuer;
    uint8_t scratch[SCRATCH_BYTES];
    struct arena arena;
    struct auth_principal found = {0};
    struct auth_moment now = {now_ns, clock_real_ns(clock_system()) / NS_PER_S};
    /* Read before the lookup, so that a token that ends meanwhile is not found in the cache. */
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
enum status find_token(struct authenticator *authenticator, struct slice token, uint64_t revision,
                       int64_t now_ns, struct auth_principal *ret_principal)
{
    struct slice bearer = SLICE_LITERAL("Bearer ");
    if (slice_has_prefix(token, bearer))
        token = slice_sub(token, bearer.len, token.len - bearer.len);
    if (token.len == 0 || token.len > AUTH_JWT_BYTES_MAX || !authenticator->config->issuer)
        return ST_INVALID_AUTH_TOKEN;
    struct token_slot *slot =
        &authenticator->slots[hash_map_hash(&authenticator->hashing, token) % SLOTS];
    if (!slot_matches(authenticator, slot, token, now_ns))
        TRY(look_up(authenticator, slot, token, now_ns));
    *ret_principal = (struct auth_principal){
        .user = slice_of(slot->bytes + slot->token_len, slot->user_len),
        .revision = slot->revision == OF_NOW ? revision : slot->revision,
    };
    return ST_OK;
}

/* A token comes before a certificate. */
static bool has_token(const struct grpc_call *call, struct slice *ret_token)
{
    return grpc_call_metadata(call, SLICE_LITERAL("token"), ret_token) ||
           grpc_call_metadata(call, SLICE_LITERAL("authorization"), ret_token);
}

/* etcd refuses an empty token, while a call without one may be admitted: what is passed on for it
 * is as invalid. */
struct slice etcd_call_token(const struct grpc_call *call)
{
    struct slice token;
    if (!has_token(call, &token))
        return SLICE_EMPTY;
    return token.len ? token : SLICE_LITERAL("empty");
}

/* -- Certificates -- */

/*
 * The certificate counts only if the client itself speaks gRPC to us. Another gateway that forwards
 * requests shows its own certificate, and is recognised by its metadata; a call of our own gateway
 * has no connection.
 */
static bool has_certificate(const struct authenticator *authenticator, const struct grpc_call *call,
                            struct slice *ret_name)
{
    struct slice forwarded;
    const char *name = grpc_call_peer_name(call);
    if (!authenticator->config->names_from_certificates || !name ||
        grpc_call_metadata(call, SLICE_LITERAL("grpcgateway-accept"), &forwarded))
        return false;
    *ret_name = slice_from_text(name);
    return true;
}

enum status authenticator_find(struct authenticator *authenticator, const struct grpc_call *call,
                               struct auth_principal *ret_principal)
{
    const struct auth_rights *rights = engine_auth_rights(authenticator->shard);
    struct auth_principal none = {0};
    struct slice token, name;
    *ret_principal = none;
    if (authenticator->forwards)
        ret_principal->token = etcd_call_token(call);
    if (!auth_rights_enabled(rights))
        return ST_OK;
    uint64_t revision = auth_rights_revision(rights);
    if (has_token(call, &token))
        return find_token(authenticator, token, revision, grpc_call_now(call), ret_principal);
    if (has_certificate(authenticator, call, &name))
        *ret_principal = (struct auth_principal){.user = name, .revision = revision};
    return ST_OK;
}

/* -- Calls -- */

/* Stores a copy with the call, in its arena. */
static MUST_CHECK
enum status set_principal(struct grpc_call *call, const struct auth_principal *principal)
{
    struct auth_principal *kept = grpc_call_caller(call);
    /* A stream may live for years, so its user's name is copied only when it changes. */
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

/* The token lives as long as the call, and does not change. */
static MUST_CHECK
enum status set_token(struct grpc_call *call)
{
    struct slice token = etcd_call_token(call);
    if (grpc_call_caller(call) || !token.len)
        return ST_OK;
    struct auth_principal *kept = arena_calloc(grpc_call_arena(call), 1, sizeof(*kept));
    if (!kept)
        return ST_NOMEM;
    kept->token = token;
    grpc_call_set_caller(call, kept);
    return ST_OK;
}

struct auth_principal etcd_call_principal(const struct grpc_call *call)
{
    const struct auth_principal *kept = grpc_call_caller(call);
    return kept ? *kept : (struct auth_principal){0};
}

struct auth_principal authenticator_refresh(struct authenticator *authenticator,
                                            struct grpc_call *call)
{
    struct auth_principal now;
    bool found = !grpc_call_ended(call) && authenticator_find(authenticator, call, &now) == ST_OK;
    if (found && now.revision && set_principal(call, &now) != ST_OK)
        return (struct auth_principal){0};
    return etcd_call_principal(call);
}

/* -- The guard -- */

static const struct auth_method *method_of(const struct authenticator *authenticator,
                                           const struct grpc_row *row)
{
    return authenticator->methods[row - authenticator->rows];
}

/* A client that logs in may send an expired token, and the Watch service checks each watch. */
static bool is_open(const struct authenticator *authenticator, const struct auth_method *method)
{
    return LIKELY(!auth_rights_enabled(engine_auth_rights(authenticator->shard))) ||
           method->need == AUTH_NEED_NOTHING || method->need == AUTH_NEED_WATCH;
}

bool authenticator_open_to_all(const struct authenticator *authenticator,
                               const struct grpc_row *row)
{
    const struct auth_method *method = method_of(authenticator, row);
    return method && is_open(authenticator, method);
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

enum status authenticator_check(struct authenticator *authenticator, const struct grpc_row *row,
                                const struct http_field *fields, size_t count, int64_t now_ns)
{
    const struct auth_rights *rights = engine_auth_rights(authenticator->shard);
    const struct auth_method *method = method_of(authenticator, row);
    struct auth_principal principal = {0};
    struct slice token;
    if (!method)
        return ST_PERMISSION_DENIED;
    if (is_open(authenticator, method))
        return ST_OK;
    if (find_field(fields, count, SLICE_LITERAL("token"), &token) ||
        find_field(fields, count, SLICE_LITERAL("authorization"), &token))
        TRY(find_token(authenticator, token, auth_rights_revision(rights), now_ns, &principal));
    return auth_method_allows(method, rights, &principal);
}

static enum status admit(void *ctx, struct grpc_call *call, const struct grpc_row *row)
{
    struct authenticator *authenticator = ctx;
    const struct auth_method *method = method_of(authenticator, row);
    struct auth_principal principal;
    if (UNLIKELY(!method))
        return ST_PERMISSION_DENIED;
    if (authenticator->forwards)
        return method->need == AUTH_NEED_WATCH ? ST_OK : set_token(call);
    if (is_open(authenticator, method))
        return ST_OK;
    TRY(authenticator_find(authenticator, call, &principal));
    TRY(auth_method_allows(method, engine_auth_rights(authenticator->shard), &principal));
    return set_principal(call, &principal);
}

struct authenticator *authenticator_new(const struct etcd_config *config, struct engine *engine,
                                        struct engine_shard *shard, struct grpc_services *services)
{
    size_t count;
    struct authenticator *authenticator = xcalloc(1, sizeof(*authenticator));
    authenticator->config = config;
    authenticator->shard = shard;
    authenticator->forwards = engine_forwards(engine);
    authenticator->rows = grpc_services_rows(services, &count);
    authenticator->methods = xcalloc(size_max(count, 1), sizeof(*authenticator->methods));
    for (size_t i = 0; i < count; i++)
        authenticator->methods[i] = auth_method_find(authenticator->rows[i].path);
    hash_map_init(&authenticator->hashing, NULL, random_seed_system());
    authenticator->guard = (struct grpc_guard){.admit = admit, .ctx = authenticator};
    grpc_services_guard(services, &authenticator->guard);
    return authenticator;
}

void authenticator_free(struct authenticator *authenticator)
{
    if (!authenticator)
        return;
    for (size_t i = 0; i < SLOTS; i++)
        free(authenticator->slots[i].bytes);
    hash_map_fini(&authenticator->hashing);
    free(authenticator->methods);
    free(authenticator);
}

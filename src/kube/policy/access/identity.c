#include "kube/policy/access/identity.h"

#include "base/xalloc.h"
#include "io/loop.h"
#include "kube/policy/access/impersonate.h"
#include "kube/policy/access/rbac/rbac_fetch.h"
#include "kube/policy/access/sign_in.h"
#include "wire/http/exchange.h"

#include <stdio.h>

enum {
    ARENA_BYTES_MAX = 1 << 20,
    FIRST_BYTES = 1024,
    /* One for the namespace of a service account that is impersonated, one for that of the request,
     * one again if the first has become too old, and one for the graph of nodes. */
    FETCHES_MAX = 4,
};

enum state { SIGNING_IN, DECIDING, ADMITTED, REFUSED };

#define TO(state) (1u << (state))

static const unsigned moves[] = {
    [SIGNING_IN] = TO(DECIDING) | TO(REFUSED),
    [DECIDING] = TO(ADMITTED) | TO(REFUSED),
    [ADMITTED] = 0,
    [REFUSED] = 0,
};

struct kube_identity {
    struct kube_life life;
    struct kube_access *access;
    struct http_exchange *x;            /* NULL once it has ended or the identity was taken */
    const struct http_request *request; /* until then */
    enum state state;
    bool keep;
    bool waits; /* a sign-in or a wait for roles is under way */
    struct kube_sign_in sign_in;
    struct kube_rbac_wait wait;
    struct kube_rbac_fetch *fetches[FETCHES_MAX]; /* owned: what is not held of roles */
    size_t fetch_count;
    bool final; /* a refusal does not wait for newer roles and bindings any more */
    struct kube_impersonation impersonation;
    struct kube_attributes attributes;
    const struct kube_user_info *user;
    struct kube_write_right *right; /* which is being decided; NULL: the request itself */
    struct arena arena;
    _Alignas(ARENA_ALIGN) uint8_t first[FIRST_BYTES];
};

static void move(struct kube_identity *i, enum state next)
{
    assert(moves[i->state] & TO(next));
    i->state = next;
}

static void free_fetches(struct kube_identity *i)
{
    while (i->fetch_count)
        kube_rbac_fetch_free(i->fetches[--i->fetch_count]);
}

void kube_identity_free(struct kube_identity *i)
{
    if (!i)
        return;
    assert(!i->waits);
    free_fetches(i);
    arena_fini(&i->arena);
    free(i);
}

const struct kube_user_info *kube_identity_user(const struct kube_identity *i)
{
    assert(i->state == ADMITTED);
    return i->user;
}

/* -- Answers -- */

static void respond(struct http_exchange *x, const struct kube_status *status, struct slice body)
{
    char seconds[16];
    snprintf(seconds, sizeof(seconds), "%u", status->retry_after_s);
    if (status->retry_after_s &&
        http_add_field(x, SLICE_LITERAL("Retry-After"), slice_from_text(seconds)) != ST_OK) {
        http_abort(x);
        return;
    }
    http_respond(x, kube_status_code(status), SLICE_LITERAL("application/json"), body);
}

void kube_refuse(struct http_exchange *x, const struct kube_status *status)
{
    AUTO(buf_fini) struct buf text = {0};
    if (kube_status_write(status, &text) == ST_OK)
        respond(x, status, buf_slice(&text));
    else
        http_abort(x);
}

static void refuse(struct kube_identity *i, const struct kube_status *status)
{
    move(i, REFUSED);
    kube_refuse(i->x, status);
}

static void refuse_engine(struct kube_identity *i, enum status status)
{
    struct kube_status text;
    (void)kube_fail_engine(&text, status);
    refuse(i, &text);
}

static void admit(struct kube_identity *i)
{
    struct http_exchange *x = i->x;
    move(i, ADMITTED);
    free_fetches(i); /* a watch may last for hours */
    i->user = i->impersonation.wanted ? &i->impersonation.user : &i->sign_in.user;
    if (!i->keep) {
        http_exchange_set_user(x, NULL);
        kube_identity_free(i);
    }
    http_authorized(x);
}

/* -- Deciding -- */

bool kube_identity_is_public(struct slice path)
{
    static const char *const paths[] = {"/healthz", "/livez", "/readyz"};
    for (size_t i = 0; i < COUNT_OF(paths); i++)
        if (slice_is(path, paths[i]))
            return true;
    return false;
}

static bool allows(struct kube_identity *i, const struct kube_user_info *user,
                   const struct kube_attributes *attributes, struct kube_status *status)
{
    char reason[KUBE_RBAC_REASON_BYTES];
    if (kube_rbac_allows(i->access->rbac, user, attributes, reason))
        return true;
    return kube_fail_attributes(&i->arena, status, user, attributes, reason);
}

static bool allows_all(struct kube_identity *i, struct kube_status *status)
{
    const struct kube_impersonation *other = &i->impersonation;
    const struct kube_user_info *user = other->wanted ? &other->user : &i->sign_in.user;
    struct kube_attributes more;
    for (size_t n = 0; n < other->check_count; n++)
        if (!allows(i, &i->sign_in.user, &other->checks[n], status))
            return false;
    if (kube_identity_is_public(i->request->path))
        return true;
    return allows(i, user, &i->attributes, status) &&
           (!kube_request_right_of(&i->attributes, &more) || allows(i, user, &more, status));
}

static bool allows_right(struct kube_identity *i)
{
    struct kube_write_right *right = i->right;
    right->allowed = false;
    for (size_t n = 0; n < right->count && !right->allowed; n++)
        right->allowed = kube_rbac_allows(i->access->rbac, i->user, &right->any[n], right->reason);
    return right->allowed;
}

static void answer_right(struct kube_identity *i, enum status status)
{
    struct kube_write_right *right = TAKE(i->right);
    free_fetches(i);
    right->status = status;
    right->go(right);
}

static void fail(struct kube_identity *i, enum status status)
{
    if (i->right)
        answer_right(i, status);
    else
        refuse_engine(i, status);
}

static void on_fetched(void *ctx);

static void wait_for_roles(struct kube_identity *i);

static void decide(struct kube_identity *i)
{
    struct kube_status status = {0};
    kube_rbac_begin(i->access->rbac, i);
    bool allowed = i->right ? allows_right(i) : allows_all(i, &status);
    if (!allowed && kube_rbac_lacks(i->access->rbac)) {
        /* What the refusal has lacked is read, and then it is decided again. */
        struct http_exchange *const *client = i->right ? i->right->client : NULL;
        if (i->fetch_count == FETCHES_MAX)
            fail(i, ST_AGAIN);
        else
            i->fetches[i->fetch_count++] =
                kube_rbac_fetch_new(i->access->rbac, i->arena.account, client, on_fetched, i);
    } else if (!allowed && !i->final) {
        i->final = true;
        wait_for_roles(i);
    } else if (i->right) {
        answer_right(i, ST_OK);
    } else if (allowed) {
        admit(i);
    } else {
        refuse(i, &status);
    }
}

/* The exchange may have ended meanwhile; a call that has taken the identity waits for its right. */
static bool is_over(struct kube_identity *i)
{
    i->waits = false;
    if (i->x || i->right)
        return false;
    kube_identity_free(i);
    return true;
}

static void on_roles(struct kube_rbac_wait *wait)
{
    struct kube_identity *i = CONTAINER_OF(wait, struct kube_identity, wait);
    if (is_over(i))
        return;
    /* What takes too long to become current is decided from what is known. */
    if (wait->status == ST_OK || wait->status == ST_NOT_SYNCED)
        decide(i);
    else
        fail(i, wait->status);
}

static void wait_for_roles(struct kube_identity *i)
{
    i->waits = true;
    i->wait.current = i->final;
    i->wait.go = on_roles;
    kube_rbac_wait(i->access->rbac, &i->wait);
}

static void on_fetched(void *ctx)
{
    struct kube_identity *i = ctx;
    enum status status = kube_rbac_fetch_status(i->fetches[i->fetch_count - 1]);
    if (status == ST_OK)
        wait_for_roles(i);
    else
        fail(i, status);
}

void kube_identity_ask(struct kube_identity *i, struct kube_write_right *right)
{
    assert(i->state == ADMITTED && !i->right);
    i->right = right;
    i->final = false;
    wait_for_roles(i);
}

static void begin_deciding(struct kube_identity *i)
{
    struct kube_status status = {0};
    if (!kube_impersonation_read(&i->arena, i->request, &i->impersonation, &status)) {
        refuse(i, &status);
        return;
    }
    kube_attributes_of(&i->arena, i->request, &i->attributes);
    if (arena_ran_out(&i->arena)) {
        refuse_engine(i, ST_NOMEM);
        return;
    }
    move(i, DECIDING);
    if (kube_identity_is_public(i->request->path) && !i->impersonation.wanted)
        admit(i);
    else
        wait_for_roles(i);
}

static void on_signed_in(struct kube_sign_in *sign_in)
{
    struct kube_identity *i = CONTAINER_OF(sign_in, struct kube_identity, sign_in);
    struct kube_status status = {0};
    if (is_over(i))
        return;
    if (sign_in->status == ST_OK) {
        begin_deciding(i);
    } else if (sign_in->status == ST_INVALID_AUTH_TOKEN) {
        (void)kube_fail(&status, KUBE_UNAUTHORIZED, "Unauthorized");
        refuse(i, &status);
    } else {
        refuse_engine(i, sign_in->status);
    }
}

/* -- Life -- */

static void on_end(struct kube_life *life)
{
    struct kube_identity *i = CONTAINER_OF(life, struct kube_identity, life);
    i->x = NULL;
    i->request = NULL;
    if (!i->waits)
        kube_identity_free(i);
}

struct kube_identity *kube_identity_take(struct http_exchange *x)
{
    struct kube_life *life = http_exchange_user(x);
    struct kube_identity *i = CONTAINER_OF(life, struct kube_identity, life);
    assert(life && life->end == on_end && i->state == ADMITTED);
    i->x = NULL;
    http_exchange_set_user(x, NULL);
    return i;
}

void kube_identity_begin(struct kube_access *access, struct http_exchange *x,
                         const struct http_request *request, bool keep)
{
    const struct kube_access_options *options = &access->options;
    struct kube_identity *i = xcalloc(1, sizeof(*i));
    i->life.end = on_end;
    i->access = access;
    i->x = x;
    i->request = request;
    i->keep = keep;
    arena_init(&i->arena, i->first, sizeof(i->first), ARENA_BYTES_MAX);
    arena_charge(&i->arena, http_exchange_account(x));
    http_exchange_set_user(x, &i->life);
    i->sign_in = (struct kube_sign_in){
        .shard = options->shard,
        .clock = options->clock,
        .under_way = options->under_way,
        .tokens = options->tokens,
        .accounts = options->accounts,
        .arena = &i->arena,
        .done = on_signed_in,
    };
    i->waits = true;
    kube_sign_in_start(&i->sign_in, request);
}

#include "kube/policy/access/rbac/rbac_fetch.h"

#include "base/memory/budget.h"
#include "base/slices.h"
#include "base/xalloc.h"
#include "kube/policy/access/rbac/rbac_private.h"

#include <stdlib.h>

enum { ARENA_BYTES_MAX = 16 << 20 }; /* for the user and the names of its roles */

static void next_kind(struct kube_rbac_fetch *f);

static bool is_namespaced(enum kube_rbac_kind kind)
{
    return kind == KUBE_RBAC_ROLES || kind == KUBE_RBAC_ROLE_BINDINGS;
}

/* -- Which objects are wanted -- */

static bool wants_binding(void *ctx, const struct kube_lookup_object *object)
{
    const struct kube_rbac_fetch *f = ctx;
    return kube_binding_is_of(object, &f->sorted);
}

static bool wants_role(void *ctx, const struct kube_lookup_object *object)
{
    const struct kube_rbac_fetch *f = ctx;
    bool wanted = slices_have(f->names.items, f->names.count, object->name);
    for (size_t i = 0; !wanted && i < f->aggregated_count; i++)
        wanted = kube_role_selects(f->aggregated[i], object->data);
    return wanted;
}

/* -- The names of the roles -- */

struct collect {
    struct kube_rbac_fetch *fetch;
    struct slice kind;
};

static bool add_name(void *ctx, const struct kube_bound *bound)
{
    const struct collect *c = ctx;
    const struct kube_binding *b = bound->object->data;
    struct slice copy;
    if (slice_equal(b->ref_kind, c->kind) &&
        arena_dup(&c->fetch->arena, b->ref_name, &copy) == ST_OK)
        kube_text_add(&c->fetch->names, copy);
    return !arena_ran_out(&c->fetch->arena);
}

/* False: the bindings are not held any more. */
static bool add_names(struct kube_rbac_fetch *f, enum kube_rbac_kind kind, const char *ref_kind)
{
    struct collect collect = {f, slice_from_text(ref_kind)};
    struct slice namespace = is_namespaced(kind) ? f->namespace : SLICE_EMPTY;
    const struct kube_shelf *bindings = f->reads[kind].shelf;
    if (!bindings && kube_lookup_ready(f->rbac->lookups[kind]))
        bindings = kube_lookup_shelf(f->rbac->lookups[kind], namespace);
    if (bindings)
        kube_binding_index_each(&bindings->index, &f->user, add_name, &collect);
    return bindings;
}

/* Roles of the namespace are those of role bindings alone; cluster roles are those of both. */
static enum status collect_names(struct kube_rbac_fetch *f)
{
    bool cluster = f->at == KUBE_RBAC_CLUSTER_ROLES, found = true;
    f->names = (struct kube_text_list){.arena = &f->arena};
    f->aggregated_count = 0;
    if (f->namespace.len)
        found = add_names(f, KUBE_RBAC_ROLE_BINDINGS, cluster ? "ClusterRole" : "Role");
    if (found && cluster)
        found = add_names(f, KUBE_RBAC_CLUSTER_ROLE_BINDINGS, "ClusterRole");
    if (f->role.len)
        kube_text_add(&f->names, f->role);
    if (arena_ran_out(&f->arena))
        return ST_NOMEM;
    slices_sort(f->names.items, f->names.count);
    return found ? ST_OK : ST_AGAIN;
}

/* -- Steps -- */

static void discard(struct kube_rbac_fetch *f)
{
    list_remove(&f->in_rbac);
    for (size_t i = 0; i < KUBE_RBAC_KINDS; i++)
        kube_lookup_read_fini(&f->reads[i]);
    kube_lookup_read_fini(&f->previous);
    arena_fini(&f->arena);
    if (f->account)
        account_unref(f->account);
    free(f);
}

static void finish(struct kube_rbac_fetch *f, enum status status)
{
    f->status = status;
    f->ended = true;
    if (f->abandoned) {
        discard(f);
        return;
    }
    if (status == ST_OK && !f->of_nodes)
        list_push_front(&f->rbac->fetched, &f->in_rbac);
    f->go(f->ctx);
}

static bool note_aggregated(void *ctx, const struct kube_lookup_object *object)
{
    struct kube_rbac_fetch *f = ctx;
    const struct kube_role *role = object->data;
    if (role->aggregates)
        f->aggregated[f->aggregated_count++] = role;
    return true;
}

/* Whether more cluster roles that aggregate others were found, whose parts must be read, too.
 * Without memory for their list the fetch fails. */
static bool selects_more(struct kube_rbac_fetch *f)
{
    const struct kube_shelf *roles = f->reads[KUBE_RBAC_CLUSTER_ROLES].shelf;
    size_t before = f->aggregated_count;
    f->aggregated = arena_calloc(&f->arena, kube_shelf_count(roles) + 1, sizeof(*f->aggregated));
    f->aggregated_count = 0;
    if (f->aggregated)
        kube_shelf_each(roles, note_aggregated, f);
    return f->aggregated_count > before;
}

static void read_kind(struct kube_rbac_fetch *f);

static void on_read(struct kube_lookup_read *read)
{
    struct kube_rbac_fetch *f = read->ctx;
    enum status status = f->abandoned ? ST_CANCELED : read->status;
    bool more = status == ST_OK && f->at == KUBE_RBAC_CLUSTER_ROLES && selects_more(f);
    if (status == ST_OK && arena_ran_out(&f->arena))
        status = ST_NOMEM;
    if (status != ST_OK) {
        finish(f, status);
    } else if (more) {
        read_kind(f);
    } else {
        f->at++;
        next_kind(f);
    }
}

static void read_kind(struct kube_rbac_fetch *f)
{
    struct kube_lookup_read *read = &f->reads[f->at];
    /* Cluster roles that were read before have the selectors of those that are read now. */
    kube_lookup_read_fini(&f->previous);
    f->previous = *read;
    *read = (struct kube_lookup_read){
        .namespace = is_namespaced(f->at) ? f->namespace : SLICE_EMPTY,
        .wants = f->at < KUBE_RBAC_ROLES ? wants_binding : wants_role,
        .ctx = f,
        .account = f->account,
        .client = f->client,
        .go = on_read,
    };
    kube_lookup_read_start(f->rbac->lookups[f->at], read);
}

/* Reads the next kind that is needed and not held. */
static void next_kind(struct kube_rbac_fetch *f)
{
    for (; f->at < KUBE_RBAC_KINDS; f->at++) {
        struct kube_lookup *lookup = f->rbac->lookups[f->at];
        struct slice namespace = is_namespaced(f->at) ? f->namespace : SLICE_EMPTY;
        if (is_namespaced(f->at) && !namespace.len)
            continue;
        if (kube_lookup_ready(lookup) && kube_lookup_shelf(lookup, namespace))
            continue;
        enum status status = f->at < KUBE_RBAC_ROLES ? ST_OK : collect_names(f);
        if (status == ST_OK)
            read_kind(f);
        else
            finish(f, status);
        return;
    }
    finish(f, ST_OK);
}

static void on_nodes(struct kube_node_wait *wait)
{
    finish(CONTAINER_OF(wait, struct kube_rbac_fetch, node_wait), wait->status);
}

static void on_start(struct deferred *deferred)
{
    struct kube_rbac_fetch *f = CONTAINER_OF(deferred, struct kube_rbac_fetch, start);
    f->started = true;
    f->node_wait.go = on_nodes;
    if (f->of_nodes)
        kube_node_view_wait(f->rbac->nodes, &f->node_wait);
    else if (f->status == ST_OK)
        next_kind(f);
    else
        finish(f, f->status);
}

/* -- Life -- */

/* Bindings name users and groups; a user's uid and extra attributes do not matter to them. */
static enum status copy_lack(struct kube_rbac_fetch *f, const struct kube_rbac_lack *lack)
{
    const struct kube_texts *groups = &lack->user->groups;
    struct slice *copies = arena_calloc(&f->arena, groups->count + 1, sizeof(*copies));
    struct slice *sorted = arena_calloc(&f->arena, groups->count + 1, sizeof(*sorted));
    if (!copies || !sorted)
        return ST_NOMEM;
    for (size_t i = 0; i < groups->count; i++) {
        TRY(arena_dup(&f->arena, groups->items[i], &copies[i]));
        sorted[i] = copies[i];
    }
    slices_sort(sorted, groups->count);
    TRY(arena_dup(&f->arena, lack->user->name, &f->user.name));
    f->user.groups = (struct kube_texts){copies, groups->count};
    f->sorted = f->user;
    f->sorted.groups.items = sorted;
    TRY(arena_dup(&f->arena, lack->namespace, &f->namespace));
    return arena_dup(&f->arena, lack->role, &f->role);
}

struct kube_rbac_fetch *kube_rbac_fetch_new(struct kube_rbac *rbac, struct account *account,
                                            struct http_exchange *const *client,
                                            void (*go)(void *ctx), void *ctx)
{
    struct kube_rbac_fetch *f = xcalloc(1, sizeof(*f));
    assert(kube_rbac_lacks(rbac));
    f->rbac = rbac;
    f->go = go;
    f->ctx = ctx;
    f->account = account;
    f->client = client;
    list_init(&f->in_rbac);
    arena_init(&f->arena, NULL, 0, ARENA_BYTES_MAX);
    if (account)
        account_ref(account);
    f->of_nodes = rbac->lack.nodes;
    f->status = f->of_nodes ? ST_OK : copy_lack(f, &rbac->lack);
    f->start.fn = on_start;
    loop_defer(rbac->loop, &f->start);
    return f;
}

enum status kube_rbac_fetch_status(const struct kube_rbac_fetch *f)
{
    return f->status;
}

void kube_rbac_fetch_free(struct kube_rbac_fetch *f)
{
    if (!f)
        return;
    f->abandoned = true;
    loop_defer_cancel(&f->start);
    if (f->of_nodes && f->started && !f->ended)
        kube_node_view_forget(&f->node_wait);
    if (f->ended || !f->started || f->of_nodes)
        discard(f);
    else
        kube_lookup_read_give_up(&f->reads[f->at]);
}

#include "kube/policy/access/rbac/rbac.h"

#include "base/clock.h"
#include "base/xalloc.h"
#include "codec/json/field_fault.h"
#include "engine/engine.h"
#include "kube/policy/access/rbac/node_authorizer.h"
#include "kube/policy/access/rbac/rbac_private.h"

#include <stdio.h>

#define AGAIN_NS (1 * NS_PER_MS)

enum { TRIES_MAX = 500 }; /* until roles and bindings are as new as the store was */

static void on_again(struct timer *timer);

/* -- Life -- */

static const struct kube_lookup_kind rows[KUBE_RBAC_KINDS] = {
    [KUBE_RBAC_ROLES] = {.prefix = "/registry/roles/", .namespaced = true, .read = kube_role_read},
    [KUBE_RBAC_ROLE_BINDINGS] = {.prefix = "/registry/rolebindings/",
                                 .namespaced = true,
                                 .read = kube_binding_read,
                                 .added = kube_binding_index_add,
                                 .removed = kube_binding_index_remove,
                                 .index_bytes = kube_binding_index_bytes},
    [KUBE_RBAC_CLUSTER_ROLES] = {.prefix = "/registry/clusterroles/",
                                 .read = kube_cluster_role_read,
                                 .limited = "aggregationRule.clusterRoleSelectors",
                                 .limits = KUBE_ROLE_LIMITS},
    [KUBE_RBAC_CLUSTER_ROLE_BINDINGS] = {.prefix = "/registry/clusterrolebindings/",
                                         .read = kube_binding_read,
                                         .added = kube_binding_index_add,
                                         .removed = kube_binding_index_remove,
                                         .index_bytes = kube_binding_index_bytes},
};

const struct kube_lookup_kind *kube_rbac_kind(const char *prefix)
{
    for (size_t i = 0; i < KUBE_RBAC_KINDS; i++)
        if (strcmp(rows[i].prefix, prefix) == 0)
            return &rows[i];
    return NULL;
}

struct kube_rbac *kube_rbac_new(const struct kube_rbac_options *options)
{
    struct kube_rbac *rbac = xcalloc(1, sizeof(*rbac));
    rbac->authorization = options->authorization;
    rbac->shard = options->shard;
    rbac->loop = options->loop;
    rbac->again.fn = on_again;
    list_init(&rbac->fetched);
    list_init(&rbac->behind);
    for (size_t i = 0; i < KUBE_RBAC_KINDS; i++)
        rbac->lookups[i] = kube_lookup_new(&(struct kube_lookup_options){
            .shard = options->shard,
            .loop = options->loop,
            .under_way = options->under_way,
            .stock = kube_lookup_pool_get(options->pool, &rows[i], 0),
        });
    if (options->authorization >= KUBE_AUTHORIZATION_NODE)
        rbac->nodes = kube_node_view_new(&(struct kube_node_view_options){
            .shard = options->shard,
            .loop = options->loop,
            .under_way = options->under_way,
            .nodes = options->nodes,
        });
    return rbac;
}

void kube_rbac_stop(struct kube_rbac *rbac)
{
    for (size_t i = 0; rbac && i < KUBE_RBAC_KINDS; i++)
        kube_lookup_stop(rbac->lookups[i]);
    if (rbac) {
        kube_node_view_stop(rbac->nodes);
        loop_timer_cancel(rbac->loop, &rbac->again);
        on_again(&rbac->again); /* ends those that wait */
    }
}

void kube_rbac_free(struct kube_rbac *rbac)
{
    if (!rbac)
        return;
    assert(list_empty(&rbac->fetched));
    for (size_t i = 0; i < KUBE_RBAC_KINDS; i++)
        kube_lookup_free(rbac->lookups[i]);
    kube_node_view_free(rbac->nodes);
    free(rbac);
}

bool kube_rbac_ready(struct kube_rbac *rbac)
{
    for (size_t i = 0; i < KUBE_RBAC_KINDS; i++)
        if (!kube_lookup_ready(rbac->lookups[i]))
            return false;
    return true;
}

/* The revision up to which all of them are known. */
static int64_t revision_of(const struct kube_rbac *rbac)
{
    int64_t revision = rbac->nodes ? kube_node_view_revision(rbac->nodes) : INT64_MAX;
    for (size_t i = 0; i < KUBE_RBAC_KINDS; i++) {
        int64_t known = kube_lookup_revision(rbac->lookups[i]);
        revision = known < revision ? known : revision;
    }
    return revision;
}

static void end_wait(struct kube_rbac_wait *wait, enum status status)
{
    wait->status = status;
    wait->go(wait);
}

/* They are ready. The hub reads what is new in every turn, and the lookups follow. */
static void look(struct kube_rbac_wait *wait)
{
    struct kube_rbac *rbac = wait->rbac;
    if (!wait->current || revision_of(rbac) >= wait->revision) {
        end_wait(wait, ST_OK);
    } else if (wait->tries++ == TRIES_MAX) {
        end_wait(wait, ST_NOT_SYNCED);
    } else {
        list_push_back(&rbac->behind, &wait->in_rbac);
        if (!rbac->again.set)
            loop_timer_set(rbac->loop, &rbac->again, clock_add(loop_now_ns(rbac->loop), AGAIN_NS));
    }
}

/* Each in turn; one that was ready may have to be read again meanwhile. */
static void on_lookup(struct kube_lookup_wait *lookup)
{
    struct kube_rbac_wait *wait = CONTAINER_OF(lookup, struct kube_rbac_wait, lookup);
    struct kube_rbac *rbac = wait->rbac;
    if (lookup->status != ST_OK)
        end_wait(wait, lookup->status);
    else if (kube_rbac_ready(rbac))
        look(wait);
    else if (wait->next == 4 * KUBE_RBAC_KINDS)
        end_wait(wait, ST_TIMEOUT);
    else
        kube_lookup_wait(rbac->lookups[wait->next++ % KUBE_RBAC_KINDS], lookup);
}

static void wait_until_ready(struct kube_rbac_wait *wait)
{
    wait->next = 1;
    kube_lookup_wait(wait->rbac->lookups[0], &wait->lookup);
}

static void on_again(struct timer *timer)
{
    struct kube_rbac *rbac = CONTAINER_OF(timer, struct kube_rbac, again);
    struct list behind, *link;
    list_init(&behind);
    list_append(&behind, &rbac->behind);
    while ((link = list_pop_front(&behind)) != NULL)
        wait_until_ready(LIST_ENTRY(link, struct kube_rbac_wait, in_rbac));
}

void kube_rbac_wait(struct kube_rbac *rbac, struct kube_rbac_wait *wait)
{
    struct engine_status now = {0};
    if (wait->current)
        engine_status_get(rbac->shard, &now);
    wait->rbac = rbac;
    wait->lookup.go = on_lookup;
    wait->revision = now.revision;
    wait->tries = 0;
    wait_until_ready(wait);
}

/* -- Visiting the rules of a user -- */

struct visit {
    struct kube_rbac *rbac;
    const struct kube_user_info *user;
    struct slice in;        /* the namespace of the decision; empty: none */
    struct slice namespace; /* namespace of the binding; empty: a cluster role binding */
    const struct kube_rbac_fetch *fetch; /* what was read for this user there; NULL: nothing */
    bool lacking;                        /* something that is needed is not held */
    size_t steps;
    bool exhausted; /* too many steps */
    bool ended;     /* fn has returned false */
    bool (*fn)(struct visit *visit, const struct kube_rule *rule);
    struct kube_bound bound; /* the binding whose rules are visited */
    /* Aggregated roles whose parts were visited; owned. */
    const struct kube_role **gathered;
    size_t gathered_count, gathered_capacity;
    /* Roles that are missing. */
    struct buf missing;
    unsigned missing_count;
    /* For fn. */
    const struct kube_attributes *attributes;
    struct arena *arena;
    struct kube_rule *rules;
    size_t count, capacity;
};

static void visit_fini(struct visit *v)
{
    buf_fini(&v->missing);
    free(v->gathered);
}

static bool is_same_user(const struct kube_user_info *a, const struct kube_user_info *b)
{
    bool same = slice_equal(a->name, b->name) && a->groups.count == b->groups.count;
    for (size_t i = 0; same && i < a->groups.count; i++)
        same = slice_equal(a->groups.items[i], b->groups.items[i]);
    return same;
}

/* What was read for this user in this namespace, with this role if it is not empty. */
static const struct kube_rbac_fetch *find_fetch(const struct kube_rbac *rbac,
                                                const struct kube_user_info *user,
                                                struct slice namespace, struct slice role)
{
    const struct kube_rbac_fetch *f;
    LIST_FOREACH (f, &rbac->fetched, in_rbac)
        if (f->ctx == rbac->owner && slice_equal(f->namespace, namespace) &&
            is_same_user(&f->user, user) && (!role.len || slice_equal(f->role, role)))
            return f;
    return NULL;
}

/* NULL: it is not held, and was not read for this decision. */
static const struct kube_shelf *shelf_of(struct visit *v, enum kube_rbac_kind kind)
{
    bool namespaced = kind == KUBE_RBAC_ROLES || kind == KUBE_RBAC_ROLE_BINDINGS;
    struct slice namespace = namespaced ? v->in : SLICE_EMPTY;
    const struct kube_shelf *shelf = v->fetch ? v->fetch->reads[kind].shelf : NULL;
    if (!shelf)
        shelf = kube_lookup_shelf(v->rbac->lookups[kind], namespace);
    v->lacking = v->lacking || !shelf;
    return shelf;
}

static bool charge(struct visit *v, size_t steps)
{
    v->steps += steps;
    v->exhausted = v->exhausted || v->steps > KUBE_RULE_STEPS_MAX;
    return !v->exhausted && !v->ended;
}

static void visit_rules(struct visit *v, const struct kube_rules *rules)
{
    for (size_t i = 0; i < rules->count; i++) {
        if (!charge(v, kube_rule_cost(&rules->items[i])))
            return;
        if (!v->fn(v, &rules->items[i])) {
            v->ended = true;
            return;
        }
    }
}

/* Roles that an aggregated role selects. */
struct gather {
    struct visit *visit;
    const struct kube_role *of;
};

static void visit_cluster_role(struct visit *v, const struct kube_role *role);

static bool gather_one(void *ctx, const struct kube_lookup_object *object)
{
    struct gather *g = ctx;
    if (!charge(g->visit, 1 + 4 * g->of->selector_count))
        return false;
    if (kube_role_selects(g->of, object->data))
        visit_cluster_role(g->visit, object->data);
    return charge(g->visit, 0);
}

/* Whether its parts are to be visited: once, also if it selects itself. */
static bool begin_gathering(struct visit *v, const struct kube_role *role)
{
    for (size_t i = 0; i < v->gathered_count; i++)
        if (v->gathered[i] == role)
            return false;
    if (v->gathered_count == v->gathered_capacity) {
        v->gathered_capacity = size_max(8, 2 * v->gathered_capacity);
        v->gathered = xrealloc(v->gathered, v->gathered_capacity * sizeof(*v->gathered));
    }
    v->gathered[v->gathered_count++] = role;
    return true;
}

/* Each level of aggregation is charged with all cluster roles, which bounds the levels. */
static void visit_cluster_role(struct visit *v, const struct kube_role *role)
{
    if (!role->aggregates) {
        visit_rules(v, &role->rules);
        return;
    }
    if (!charge(v, v->gathered_count) || !begin_gathering(v, role))
        return;
    const struct kube_shelf *roles = shelf_of(v, KUBE_RBAC_CLUSTER_ROLES);
    if (roles)
        kube_shelf_each(roles, gather_one, &(struct gather){v, role});
}

/* Whether one of the texts, which have commas between them, is this one. */
static bool has_text(const struct buf *in, struct slice text)
{
    for (size_t at = 0; at + text.len <= in->len; at++) {
        bool begins = at == 0 || in->ptr[at - 1] == ' ';
        bool ends = at + text.len == in->len || in->ptr[at + text.len] == ',';
        if (begins && ends && memcmp(in->ptr + at, text.ptr, text.len) == 0)
            return true;
    }
    return false;
}

/* Without memory the reason is shorter. */
static void note_missing(struct visit *v, const char *format, struct slice name)
{
    AUTO(buf_fini) struct buf text = {0}, quoted = {0};
    if (go_escape(name, &quoted) != ST_OK ||
        buf_append_format(&text, format, SLICE_ARGS(buf_slice(&quoted))) != ST_OK ||
        has_text(&v->missing, buf_slice(&text)) ||
        v->missing.len + text.len > KUBE_RBAC_REASON_BYTES)
        return;
    if (v->missing_count++)
        (void)!buf_append_text(&v->missing, ", ");
    (void)!buf_append(&v->missing, buf_slice(&text));
}

static void visit_role(struct visit *v, struct slice kind, struct slice name)
{
    static const struct kube_shelf none;
    v->gathered_count = 0;
    bool cluster = slice_is(kind, "ClusterRole");
    if (!cluster && !slice_is(kind, "Role")) {
        note_missing(v, "unsupported role reference kind: \"%.*s\"", kind);
        return;
    }
    /* A cluster role binding cannot refer to a role of a namespace. */
    const struct kube_shelf *roles = &none;
    if (cluster || v->namespace.len)
        roles = shelf_of(v, cluster ? KUBE_RBAC_CLUSTER_ROLES : KUBE_RBAC_ROLES);
    if (!roles)
        return;
    const struct kube_lookup_object *object = kube_shelf_get(roles, name);
    if (!object && kube_shelf_has(roles, name))
        note_missing(v, "the role \"%.*s\" exceeds the limits of this server", name);
    else if (!object && cluster)
        note_missing(v, "clusterrole.rbac.authorization.k8s.io \"%.*s\" not found", name);
    else if (!object)
        note_missing(v, "role.rbac.authorization.k8s.io \"%.*s\" not found", name);
    else if (cluster)
        visit_cluster_role(v, object->data);
    else
        visit_rules(v, &((const struct kube_role *)object->data)->rules);
}

static bool visit_binding(void *ctx, const struct kube_bound *bound)
{
    struct visit *v = ctx;
    const struct kube_binding *b = bound->object->data;
    v->bound = *bound;
    if (charge(v, 1))
        visit_role(v, b->ref_kind, b->ref_name);
    return !v->exhausted && !v->ended;
}

static void visit_bindings(struct visit *v, enum kube_rbac_kind kind, struct slice namespace)
{
    const struct kube_shelf *bindings = shelf_of(v, kind);
    v->namespace = namespace;
    if (bindings && charge(v, 1 + v->user->groups.count))
        kube_binding_index_each(&bindings->index, v->user, visit_binding, v);
}

static void visit_user(struct visit *v, struct slice namespace)
{
    v->in = namespace;
    v->fetch = find_fetch(v->rbac, v->user, namespace, SLICE_EMPTY);
    visit_bindings(v, KUBE_RBAC_CLUSTER_ROLE_BINDINGS, SLICE_EMPTY);
    if (namespace.len && !v->ended && !v->exhausted)
        visit_bindings(v, KUBE_RBAC_ROLE_BINDINGS, namespace);
}

/* Notes what a decision has lacked that is not in favour of its user. */
static void note_lack(const struct visit *v, struct slice role)
{
    struct kube_rbac_lack *lack = &v->rbac->lack;
    if (v->lacking && !lack->user)
        *lack = (struct kube_rbac_lack){.user = v->user, .namespace = v->in, .role = role};
}

void kube_rbac_begin(struct kube_rbac *rbac, const void *owner)
{
    rbac->lack = (struct kube_rbac_lack){0};
    rbac->owner = owner;
}

bool kube_rbac_lacks(const struct kube_rbac *rbac)
{
    return rbac->lack.user || rbac->lack.nodes;
}

/* -- Reasons -- */

static void set_reason(const struct visit *v, const char *before, char *ret_reason)
{
    int count = (int)size_min(v->missing.len, KUBE_RBAC_REASON_BYTES - 32);
    bool many = v->missing_count > 1;
    *ret_reason = 0;
    if (v->lacking)
        snprintf(ret_reason, KUBE_RBAC_REASON_BYTES,
                 "%sroles and bindings are being read, please try again", before);
    else if (v->exhausted)
        snprintf(ret_reason, KUBE_RBAC_REASON_BYTES,
                 "%sthe user has too many bindings and rules to examine", before);
    else if (count)
        snprintf(ret_reason, KUBE_RBAC_REASON_BYTES, "%s%s%.*s%s", before, many ? "[" : "", count,
                 (const char *)v->missing.ptr, many ? "]" : "");
}

static enum status append_name(struct buf *to, struct slice a, struct slice b)
{
    TRY(buf_append_text(to, " \""));
    TRY(go_escape(a, to));
    if (b.len) {
        TRY(buf_append_text(to, "/"));
        TRY(go_escape(b, to));
    }
    return buf_append_text(to, "\"");
}

/* RoleBinding "name/namespace" of Role "x" to ServiceAccount "name/namespace" */
static enum status describe(const struct visit *v, struct buf *to)
{
    static const char *const kinds[] = {
        [SUBJECT_USER] = "User", [SUBJECT_GROUP] = "Group", [SUBJECT_ACCOUNT] = "ServiceAccount"};
    const struct kube_lookup_object *binding = v->bound.object;
    const struct kube_binding *b = binding->data;
    const struct kube_subject *subject = v->bound.subject;
    bool account = subject->kind == SUBJECT_ACCOUNT;
    struct slice of = subject->namespace.len ? subject->namespace : binding->namespace;
    TRY(buf_append_text(to, binding->namespace.len ? "RBAC: allowed by RoleBinding"
                                                   : "RBAC: allowed by ClusterRoleBinding"));
    TRY(append_name(to, binding->name, binding->namespace));
    TRY(buf_append_format(to, " of %.*s", SLICE_ARGS(b->ref_kind)));
    TRY(append_name(to, b->ref_name, SLICE_EMPTY));
    TRY(buf_append_format(to, " to %s", kinds[subject->kind]));
    return append_name(to, subject->name, account ? of : SLICE_EMPTY);
}

/* -- Decisions -- */

static bool goes_on(struct visit *v, const struct kube_rule *rule)
{
    return !kube_rule_allows(rule, v->attributes);
}

static bool roles_allow(struct kube_rbac *rbac, const struct kube_user_info *user,
                        const struct kube_attributes *attributes,
                        char ret_reason[KUBE_RBAC_REASON_BYTES])
{
    struct visit v = {.rbac = rbac, .user = user, .fn = goes_on, .attributes = attributes};
    *ret_reason = 0;
    visit_user(&v, attributes->of_resource ? attributes->namespace : SLICE_EMPTY);
    if (v.ended) {
        AUTO(buf_fini) struct buf text = {0};
        *ret_reason = 0;
        if (describe(&v, &text) == ST_OK)
            snprintf(ret_reason, KUBE_RBAC_REASON_BYTES, "%.*s", SLICE_ARGS(buf_slice(&text)));
    } else {
        set_reason(&v, "RBAC: ", ret_reason);
    }
    if (!v.ended)
        note_lack(&v, SLICE_EMPTY);
    visit_fini(&v);
    return v.ended;
}

static bool node_may(struct kube_rbac *rbac, const struct kube_user_info *user,
                     const struct kube_attributes *attributes,
                     char ret_reason[KUBE_RBAC_REASON_BYTES])
{
    enum kube_node_decision decision =
        kube_node_decide(rbac->nodes, user, attributes, ret_reason, KUBE_RBAC_REASON_BYTES);
    rbac->lack.nodes = rbac->lack.nodes || decision == KUBE_NODE_LACKS;
    return decision == KUBE_NODE_ALLOWED;
}

/* ret_reason has room for KUBE_RBAC_REASON_BYTES. */
typedef bool authorizer(struct kube_rbac *rbac, const struct kube_user_info *user,
                        const struct kube_attributes *attributes, char *ret_reason);

/* In the order in which they decide. */
static authorizer *const authorizers[][2] = {
    [KUBE_AUTHORIZATION_RBAC] = {roles_allow},
    [KUBE_AUTHORIZATION_NODE] = {node_may},
    [KUBE_AUTHORIZATION_NODE_RBAC] = {node_may, roles_allow},
    [KUBE_AUTHORIZATION_RBAC_NODE] = {roles_allow, node_may},
};

bool kube_rbac_allows(struct kube_rbac *rbac, const struct kube_user_info *user,
                      const struct kube_attributes *attributes,
                      char ret_reason[KUBE_RBAC_REASON_BYTES])
{
    authorizer *const *both = authorizers[rbac->authorization];
    char second[KUBE_RBAC_REASON_BYTES];
    *ret_reason = 0;
    if (kube_texts_have(&user->groups, KUBE_GROUP_MASTERS) ||
        both[0](rbac, user, attributes, ret_reason))
        return true;
    if (!both[1])
        return false;
    bool allowed = both[1](rbac, user, attributes, second);
    size_t len = allowed ? 0 : strlen(ret_reason);
    snprintf(ret_reason + len, KUBE_RBAC_REASON_BYTES - len, "%s%s", len && *second ? "\n" : "",
             second);
    return allowed;
}

static bool collect(struct visit *v, const struct kube_rule *rule)
{
    if (v->count == v->capacity) {
        size_t capacity = v->capacity ? v->capacity * 2 : 16;
        struct kube_rule *more = arena_calloc(v->arena, capacity, sizeof(*more));
        if (!more)
            return false;
        if (v->count)
            memcpy(more, v->rules, v->count * sizeof(*more));
        v->rules = more;
        v->capacity = capacity;
    }
    v->rules[v->count++] = *rule;
    return true;
}

static bool finish(struct visit *v, struct kube_rules *ret_rules, char *ret_reason)
{
    *ret_rules = (struct kube_rules){v->rules, v->count};
    set_reason(v, "", ret_reason);
    visit_fini(v);
    return !v->exhausted && !v->ended;
}

bool kube_rbac_rules(struct kube_rbac *rbac, struct arena *arena, const struct kube_user_info *user,
                     struct slice namespace, struct kube_rules *ret_rules,
                     char ret_reason[KUBE_RBAC_REASON_BYTES])
{
    struct visit v = {.rbac = rbac, .user = user, .fn = collect, .arena = arena};
    visit_user(&v, namespace);
    note_lack(&v, SLICE_EMPTY);
    return finish(&v, ret_rules, ret_reason);
}

/* As Kubernetes joins the errors of several authorizers. Without memory the reason stays. */
static void add_reason(char *reason, const char *more, bool before)
{
    AUTO(buf_fini) struct buf all = {0};
    size_t len = strlen(reason);
    bool list = len && reason[0] == '[';
    struct slice old = slice_of(reason + list, len - (list ? 2 : 0)), new = slice_from_text(more);
    struct slice first = before ? new : old, last = before ? old : new;
    if (buf_append_format(&all, "[%.*s, %.*s]", SLICE_ARGS(first), SLICE_ARGS(last)) == ST_OK)
        snprintf(reason, KUBE_RBAC_REASON_BYTES, "%.*s", SLICE_ARGS(len ? buf_slice(&all) : new));
}

bool kube_rbac_list_rules(struct kube_rbac *rbac, struct arena *arena,
                          const struct kube_user_info *user, struct slice namespace,
                          struct kube_rules *ret_rules, char ret_reason[KUBE_RBAC_REASON_BYTES])
{
    struct slice node;
    bool complete = true;
    *ret_rules = (struct kube_rules){0};
    *ret_reason = 0;
    if (rbac->authorization != KUBE_AUTHORIZATION_NODE)
        complete = kube_rbac_rules(rbac, arena, user, namespace, ret_rules, ret_reason);
    if (!rbac->nodes || !kube_user_is_node(user, &node))
        return complete;
    add_reason(ret_reason, "node authorizer does not support user rule resolution",
               rbac->authorization == KUBE_AUTHORIZATION_NODE_RBAC);
    return false;
}

bool kube_rbac_role_rules(struct kube_rbac *rbac, struct arena *arena,
                          const struct kube_user_info *user, struct slice ref_kind,
                          struct slice ref_name, struct slice namespace,
                          struct kube_rules *ret_rules, char ret_reason[KUBE_RBAC_REASON_BYTES])
{
    struct visit v = {.rbac = rbac,
                      .user = user,
                      .fn = collect,
                      .arena = arena,
                      .in = namespace,
                      .namespace = namespace,
                      .fetch = find_fetch(rbac, user, namespace, ref_name)};
    visit_role(&v, ref_kind, ref_name);
    note_lack(&v, ref_name);
    bool found = !v.missing_count && !v.lacking;
    return finish(&v, ret_rules, ret_reason) && found;
}

#include "kube/handlers/write/policies_private.h"
#include "kube/handlers/write/webhooks.h"

#include "kube/call/conversion_batch.h"
#include "kube/call/operation.h"
#include "kube/call/respond.h"
#include "kube/policy/admission/admission.h"

#include <stdlib.h>

static enum kube_stepped gather(struct kube_policy_facts *f);

/* -- Life -- */

void kube_policies_release(struct kube_change *change)
{
    struct kube_policy_facts *f = change->policies;
    if (!f)
        return;
    struct kube_call *call = change->call;
    if (f->page_open)
        engine_range_close(&call->range);
    kube_policies_count(f);
    for (size_t i = 0; i < f->count; i++) {
        kube_lookup_release(f->cases[i].policy_object);
        kube_lookup_release(f->cases[i].binding_object);
    }
    for (size_t i = 0; i < KUBE_POLICY_PARTS; i++)
        kube_lookup_read_fini(&f->reads[i].read);
    kube_webhooks_release(f->hooks);
    kube_policies_free_fetches(f);
    kube_conversion_batch_free(f->batch);
    kube_kinds_unref(f->kinds);
    arena_fini(&f->arena);
    *f = (struct kube_policy_facts){
        .change = change, .hooks = f->hooks, .checked = f->checked, .warned = f->warned};
}

void kube_policies_forget(struct kube_change *change)
{
    kube_webhooks_forget(change->policies->hooks);
}

void kube_policies_free(struct kube_change *change)
{
    kube_policies_release(change);
    if (change->policies)
        kube_webhooks_free(change->policies->hooks);
}

void kube_policies_resume(struct kube_policy_facts *f, enum status status)
{
    struct kube_change *change = f->change;
    if (!kube_call_succeeded(change->call, status))
        return;
    switch (gather(f)) {
    case KUBE_STEP_NEXT:
        kube_change_next(change);
        break;
    case KUBE_STEP_FAIL:
        kube_call_fail(change->call);
        break;
    default:
        break;
    }
}

/* -- The request -- */

bool kube_policy_part_of(const struct kube_kind *kind, enum kube_policy_part *ret_part)
{
    static const char *const names[KUBE_POLICY_PARTS] = {
        [KUBE_POLICIES] = "validatingadmissionpolicies",
        [KUBE_POLICY_BINDINGS] = "validatingadmissionpolicybindings",
        [KUBE_MUTATING_POLICIES] = "mutatingadmissionpolicies",
        [KUBE_MUTATING_BINDINGS] = "mutatingadmissionpolicybindings",
        [KUBE_VALIDATING_WEBHOOKS] = "validatingwebhookconfigurations",
        [KUBE_MUTATING_WEBHOOKS] = "mutatingwebhookconfigurations",
    };
    for (unsigned i = 0; i < KUBE_POLICY_PARTS; i++)
        if (kube_kind_is(kind, "admissionregistration.k8s.io", names[i])) {
            *ret_part = (enum kube_policy_part)i;
            return true;
        }
    return false;
}

static unsigned operation_of(const struct kube_change *change)
{
    if (change->decide)
        return change->acts;
    return change->operation == KUBE_ADMISSION_CREATE ? KUBE_MATCH_CREATE : KUBE_MATCH_UPDATE;
}

/* Policies and their bindings are not subject to policies, and what configures admission is not
 * subject to webhooks: otherwise a webhook could prevent its own removal. */
static bool is_subject(const struct kube_kind *kind)
{
    return strcmp(kind->group, "admissionregistration.k8s.io") != 0 ||
           !strstr(kind->plural, "admissionpolic");
}

static bool is_subject_to_webhooks(const struct kube_kind *kind)
{
    return strcmp(kind->group, "admissionregistration.k8s.io") != 0 ||
           (!strstr(kind->plural, "admissionpolic") && !strstr(kind->plural, "webhookconfig"));
}

struct kube_match_request kube_policies_request(const struct kube_change *change)
{
    const struct kube_call *call = change->call;
    unsigned operation = operation_of(change);
    struct kube_match_request request = {
        .kind = call->kind,
        .subresource = call->path.subresource,
        .operation = operation,
        .namespace = call->path.namespace,
        /* A delete of many names none. */
        .name = operation == KUBE_MATCH_DELETE ? call->path.name : change->name,
    };
    /* A Binding that is not posted to its pod. */
    if (change->posted && !request.subresource.len)
        request.kind =
            kube_builtin_find(SLICE_EMPTY, SLICE_LITERAL("v1"), SLICE_LITERAL("bindings"));
    /* As in Kubernetes, the namespace of a namespace is itself. */
    if (kube_kind_is(call->kind, "", "namespaces"))
        request.namespace = request.name;
    return request;
}

/* The other versions of a custom resource, or kinds of Kubernetes that are stored alike. */
static bool add_equivalents(struct kube_policy_facts *f, const struct kube_kind *kind)
{
    const struct kube_custom *custom = kube_custom_of(kind);
    size_t count, most = custom ? custom->definition->version_count : 0, found = 0;
    const struct kube_kind *builtin = kube_builtin_kinds(&count);
    const struct kube_kind **all = arena_calloc(&f->arena, most + 8, sizeof(*all));
    if (!all)
        return false;
    for (size_t i = 0; i < most; i++) {
        const struct kube_custom *other = &custom->definition->versions[i];
        if (other->served && strcmp(other->kind.version, kind->version) != 0)
            all[found++] = &other->kind;
    }
    for (size_t i = 0; i < count && !custom && found < 8; i++)
        if (&builtin[i] != kind && strcmp(builtin[i].storage_prefix, kind->storage_prefix) == 0 &&
            strcmp(builtin[i].plural, kind->plural) == 0)
            all[found++] = &builtin[i];
    f->request.equivalents = all;
    f->request.equivalent_count = found;
    return true;
}

/* -- Policies and bindings -- */

static bool add_case(void *ctx, const struct kube_lookup_object *policy,
                     const struct kube_lookup_object *binding)
{
    struct kube_policy_facts *f = ctx;
    f->too_many = f->count == KUBE_POLICY_CASES_MAX;
    if (f->too_many)
        return false;
    if (f->count == f->capacity) {
        size_t capacity = size_max(4, 2 * f->capacity);
        struct kube_policy_case *more = arena_calloc(&f->arena, capacity, sizeof(*more));
        if (!more)
            return false;
        if (f->count)
            memcpy(more, f->cases, f->count * sizeof(*more));
        f->cases = more;
        f->capacity = capacity;
    }
    kube_lookup_hold(policy);
    kube_lookup_hold(binding);
    f->cases[f->count++] =
        (struct kube_policy_case){.policy_object = policy, .binding_object = binding};
    return true;
}

static void on_ready(struct kube_policies_wait *wait)
{
    struct kube_policy_facts *f = CONTAINER_OF(wait, struct kube_policy_facts, wait);
    kube_policies_resume(f, wait->status);
}

static void on_part_read(struct kube_lookup_read *read)
{
    struct kube_policies_read *part = CONTAINER_OF(read, struct kube_policies_read, read);
    part->done = true;
    kube_policies_resume(part->facts, read->status);
}

/* NULL: they are not held, and are being read. */
static const struct kube_shelf *shelf_of(struct kube_policy_facts *f, enum kube_policy_part part)
{
    struct kube_call *call = f->change->call;
    struct kube_policy_finder *finder = call->api->admission->policies;
    struct kube_policies_read *read = &f->reads[part];
    if (read->done)
        return read->read.shelf;
    const struct kube_shelf *shelf = kube_policies_shelf(finder, part);
    if (shelf)
        return shelf;
    *read = (struct kube_policies_read){
        .facts = f,
        .read = {.account = call->arena.account, .client = &call->exchange, .go = on_part_read},
    };
    kube_call_hold(call);
    kube_lookup_read_start(kube_policies_lookup(finder, part), &read->read);
    return NULL;
}

/* -- The namespace -- */

static const struct json_node *read_namespace(struct kube_policy_facts *f, struct kube_kv kv)
{
    const struct kube_kind *namespaces =
        kube_builtin_find(SLICE_EMPTY, SLICE_LITERAL("v1"), SLICE_LITERAL("namespaces"));
    return kube_policies_read_tree(f, namespaces, kv, kv.mod_revision);
}

static void on_namespace(struct engine_op *op)
{
    struct kube_call *call = kube_call_of_range(op);
    struct kube_policy_facts *f = call->handler.change->policies;
    enum status status = op->status;
    struct slice field;
    if (status == ST_OK && engine_range_next(&call->range, &field))
        f->namespace_object = read_namespace(f, kube_kv_of(field));
    engine_range_close(&call->range);
    f->has_namespace = true;
    kube_policies_resume(f, arena_ran_out(&f->arena) ? ST_NOMEM : status);
}

/* -- All together -- */

/* The object of a write can be mutated once, before it is prepared. */
static bool may_mutate(const struct kube_change *change)
{
    return change->posted || (!change->decide && !change->prepared);
}

static int compare_cases(const void *a, const void *b)
{
    const struct kube_policy_case *x = a, *y = b;
    int order = slice_compare(x->policy_object->name, y->policy_object->name);
    return order ? order : slice_compare(x->binding_object->name, y->binding_object->name);
}

static enum kube_stepped find_cases(struct kube_policy_facts *f)
{
    struct kube_call *call = f->change->call;
    const struct kube_shelf *shelves[KUBE_POLICY_PARTS] = {0};
    bool needed[KUBE_POLICY_PARTS];
    bool hooks = is_subject_to_webhooks(f->request.kind);
    for (unsigned part = 0; part < KUBE_POLICY_PARTS; part++)
        needed[part] = kube_admission_uses(call->api->admission, (enum kube_policy_part)part);
    needed[KUBE_MUTATING_POLICIES] &= may_mutate(f->change);
    needed[KUBE_MUTATING_BINDINGS] &= may_mutate(f->change);
    needed[KUBE_VALIDATING_WEBHOOKS] &= hooks;
    /* Webhooks that mutate are also asked whether an object may be deleted. */
    needed[KUBE_MUTATING_WEBHOOKS] &=
        hooks && (may_mutate(f->change) || f->request.operation == KUBE_MATCH_DELETE);
    for (unsigned part = 0; part < KUBE_POLICY_PARTS; part++)
        if (needed[part] && !(shelves[part] = shelf_of(f, (enum kube_policy_part)part)))
            return KUBE_STEP_LEFT;
    f->found = true;
    f->kinds = kube_kinds_ref(kube_registry_kinds(call->api->registry));
    if (!add_equivalents(f, f->request.kind))
        return kube_fail_engine(&call->status, ST_NOMEM);
    bool added = !needed[KUBE_POLICIES] ||
                 kube_policies_each(shelves[KUBE_POLICIES], shelves[KUBE_POLICY_BINDINGS],
                                    &f->request, add_case, f);
    f->validating = f->count;
    added =
        added && (!needed[KUBE_MUTATING_POLICIES] ||
                  kube_policies_each(shelves[KUBE_MUTATING_POLICIES],
                                     shelves[KUBE_MUTATING_BINDINGS], &f->request, add_case, f));
    /* One mutation sees the result of another, so that their order counts. */
    if (added && f->count > f->validating)
        qsort(f->cases + f->validating, f->count - f->validating, sizeof(*f->cases), compare_cases);
    added = added && kube_webhooks_find(f, shelves[KUBE_VALIDATING_WEBHOOKS],
                                        shelves[KUBE_MUTATING_WEBHOOKS]);
    if (added)
        return KUBE_STEP_NEXT;
    return f->too_many ? kube_fail(&call->status, KUBE_INTERNAL_ERROR,
                                   "more than %d admission policies and bindings, or webhooks, "
                                   "concern this request",
                                   KUBE_POLICY_CASES_MAX)
                       : kube_fail_engine(&call->status, ST_NOMEM);
}

/* Continues where it has waited. */
static enum kube_stepped gather(struct kube_policy_facts *f)
{
    struct kube_call *call = f->change->call;
    if (!kube_policies_ready(call->api->admission->policies)) {
        f->wait = (struct kube_policies_wait){.go = on_ready};
        kube_call_hold(call);
        kube_policies_wait(call->api->admission->policies, &f->wait);
        return KUBE_STEP_LEFT;
    }
    if (!f->found) {
        enum kube_stepped found = find_cases(f);
        if (found != KUBE_STEP_NEXT)
            return found;
    }
    if (!f->count && !kube_webhooks_found(f))
        return KUBE_STEP_NEXT;
    if (!f->has_namespace && f->request.namespace.len &&
        !kube_kind_is(f->request.kind, "", "namespaces"))
        return kube_policies_read_key(f, "/registry/namespaces/", SLICE_EMPTY, f->request.namespace,
                                      on_namespace);
    while (f->at < f->count) {
        enum kube_stepped params = kube_policies_gather_params(f);
        if (params != KUBE_STEP_NEXT)
            return params;
    }
    return arena_ran_out(&f->arena) ? kube_fail_engine(&call->status, ST_NOMEM) : true;
}

static struct kube_policy_facts *facts_of(struct kube_change *change)
{
    struct kube_call *call = change->call;
    struct kube_policy_facts *f = change->policies;
    if (!f)
        f = change->policies = arena_calloc(&call->arena, 1, sizeof(*f));
    if (!f)
        return NULL;
    f->change = change;
    arena_init(&f->arena, NULL, 0, KUBE_POLICY_FACTS_BYTES_MAX);
    arena_charge(&f->arena, call->arena.account);
    /* Without roles nothing has to be asked. */
    kube_permissions_init(&f->permissions, call->api->access ? &f->arena : NULL);
    return f;
}

static bool has_room(struct kube_change *change, enum kube_policy_part part)
{
    struct kube_call *call = change->call;
    if (operation_of(change) != KUBE_MATCH_CREATE ||
        kube_policies_have_room(call->api->admission->policies, part))
        return true;
    return kube_fail_forbidden(
        &call->status, slice_from_text(call->kind->group), slice_from_text(call->kind->plural),
        change->name.len ? change->name : SLICE_LITERAL("Unknown"),
        part == KUBE_VALIDATING_WEBHOOKS || part == KUBE_MUTATING_WEBHOOKS
            ? "this server can use at most 1000 configurations of webhooks, and only as many as "
              "its "
              "memory for them allows"
        : kube_policy_part_binds(part)
            ? "this server can use at most 2000 bindings, and only as many as its memory for them "
              "allows"
            : "this server can use at most 1000 policies, and only as many as its memory for them "
              "allows");
}

/* Whether there is room for another policy is known now. */
static void on_known(struct kube_policies_wait *wait)
{
    kube_change_resume(CONTAINER_OF(wait, struct kube_policy_facts, wait)->change, wait->status);
}

/* Whether a policy may concern objects of the kind, as far as is known without waiting. */
static bool may_concern(struct kube_policy_finder *finder, enum kube_policy_part part,
                        const struct kube_kind *kind)
{
    const struct kube_shelf *shelf =
        kube_policies_ready(finder) ? kube_policies_shelf(finder, part) : NULL;
    return !shelf || kube_policies_name(shelf, kind);
}

/* Bindings are looked at first: without one its policies need not be. */
static bool applies(const struct kube_admission *admission, enum kube_policy_part applied,
                    enum kube_policy_part named, const struct kube_kind *kind)
{
    return admission->applied[applied] && !kube_lookup_is_empty(admission->applied[applied]) &&
           may_concern(admission->policies, named, kind);
}

static bool any_applies(const struct kube_admission *admission, const struct kube_kind *kind)
{
    return (is_subject(kind) &&
            (applies(admission, KUBE_POLICY_BINDINGS, KUBE_POLICIES, kind) ||
             applies(admission, KUBE_MUTATING_BINDINGS, KUBE_MUTATING_POLICIES, kind))) ||
           (is_subject_to_webhooks(kind) &&
            (applies(admission, KUBE_VALIDATING_WEBHOOKS, KUBE_VALIDATING_WEBHOOKS, kind) ||
             applies(admission, KUBE_MUTATING_WEBHOOKS, KUBE_MUTATING_WEBHOOKS, kind)));
}

/* In the second pass of mutating admission the same policies and webhooks decide as in the first.
 */
static bool is_gathered(const struct kube_change *change)
{
    return change->policies && change->policies->found && change->mutating &&
           change->mutating->again && !change->prepared;
}

enum kube_stepped kube_policies_gather(struct kube_change *change)
{
    struct kube_call *call = change->call;
    struct kube_admission *admission = call->api->admission;
    enum kube_policy_part part = KUBE_POLICIES;
    bool changes_policies = kube_policy_part_of(call->kind, &part);
    if (is_gathered(change))
        return KUBE_STEP_NEXT;
    kube_policies_release(change);
    if (!operation_of(change) || (changes_policies && !kube_admission_uses(admission, part)))
        return KUBE_STEP_NEXT;
    bool is_ready = kube_policies_ready(admission->policies);
    if (changes_policies && is_ready && !has_room(change, part))
        return KUBE_STEP_FAIL;
    bool waits = changes_policies && !is_ready;
    if (!waits && !any_applies(admission, kube_policies_request(change).kind))
        return KUBE_STEP_NEXT;
    struct kube_policy_facts *f = facts_of(change);
    if (!f)
        return kube_fail_engine(&call->status, ST_NOMEM);
    if (waits) {
        f->wait = (struct kube_policies_wait){.go = on_known};
        kube_call_hold(call);
        kube_policies_wait(admission->policies, &f->wait);
        return KUBE_STEP_LEFT;
    }
    f->request = kube_policies_request(change);
    (void)kube_call_user(call);
    return gather(f);
}

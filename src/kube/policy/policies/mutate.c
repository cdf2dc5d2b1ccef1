#include "kube/policy/policies/mutate.h"

#include "kube/custom/definition.h"
#include "kube/merge/apply/fields_v1.h"
#include "kube/merge/apply/typed.h"
#include "kube/merge/patch/patch.h"
#include "kube/policy/policies/created.h"
#include "kube/policy/policies/mutated.h"
#include "kube/types/defaults/defaults.h"
#include "kube/types/schema/strict.h"

#include <stdio.h>

enum {
    /* Values of an expression that are written as JSON: fewer than there is memory for. */
    CREATED_STEPS_MAX = 400000,
    CHANGE_COST = 50, /* the least that a mutation costs: that of an empty object */
    GARBAGE_BYTES_MAX = 4 << 20,
    NODE_COST = 4, /* for each value in the object, which is copied, checked and completed */
};

/* A policy with a binding and a parameter. */
struct invocation {
    const struct kube_policy_case *of;
    const struct kube_kind *kind;
    const struct json_node *param;
};

/* One pass over a write. */
struct mutation {
    struct kube_policy_run run;
    struct kube_mutating *mutating;
    struct invocation *invocations;
    size_t count, capacity;
    /* The object, which is that of the write or in the arena. Each mutation makes a new one; when
     * the old ones take much memory, the newest one moves to the other arena. */
    const struct json_node *object;
    const struct kube_kind *kind; /* its version, unless it has a kind of its own */
    struct arena arenas[2], *arena;
    size_t held_bytes; /* the size of the arena when the object had moved there */
    size_t next_key;   /* the one that is expected next */
    /* The kind of what a subresource takes instead of the object, such as an Eviction, by its
     * group, version and name alone; NULL: the object is of the kind of the rule. */
    const struct kube_kind *own;
    struct kube_kind posted;
    bool succeeded; /* a mutation */
    bool denied;    /* status says why: nothing further is done */
    /* Errors of policies that do not ignore them. */
    struct slice message; /* the first one */
    enum kube_reason reason;
    struct kube_field_error *errors, **end;
};

static struct mutation *of_run(struct kube_policy_run *run)
{
    return CONTAINER_OF(run, struct mutation, run);
}

/* -- Errors -- */

static void add_error(struct mutation *m, const struct kube_policy *policy,
                      const struct kube_policy_binding *binding, struct slice why,
                      enum kube_reason reason)
{
    struct kube_field_error *error = arena_calloc(m->run.write->arena, 1, sizeof(*error));
    struct slice text;
    if (binding)
        text = kube_policy_format(&m->run, "policy '%.*s' with binding '%.*s' denied request: %.*s",
                                  SLICE_ARGS(policy->name), SLICE_ARGS(binding->name),
                                  SLICE_ARGS(why));
    else
        text = kube_policy_format(&m->run, "policy \"%.*s\" denied request: %.*s",
                                  SLICE_ARGS(policy->name), SLICE_ARGS(why));
    if (!error) {
        m->run.no_memory = true;
        return;
    }
    if (!m->errors) {
        m->message = text;
        m->reason = reason;
    }
    *error = (struct kube_field_error){.reason = "", .message = text};
    *m->end = error;
    m->end = &error->next;
}

static void on_unusable(struct kube_policy_run *run, const struct kube_policy *policy,
                        const struct kube_policy_binding *binding, struct slice why, bool is_limit)
{
    if (!policy->ignores_failures || is_limit)
        add_error(of_run(run), policy, binding, why, KUBE_FORBIDDEN);
}

/* -- Which policies match -- */

static void on_matched(struct kube_policy_run *run, const struct kube_policy_case *c,
                       const struct kube_kind *kind)
{
    struct mutation *m = of_run(run);
    for (size_t i = 0; i < c->param_count; i++) {
        if (m->count == m->capacity) {
            size_t capacity = size_max(8, 2 * m->capacity);
            struct invocation *more = arena_calloc(run->write->arena, capacity, sizeof(*more));
            if (!more) {
                run->no_memory = true;
                return;
            }
            if (m->count)
                memcpy(more, m->invocations, m->count * sizeof(*more));
            m->invocations = more;
            m->capacity = capacity;
        }
        m->invocations[m->count++] = (struct invocation){c, kind, c->params[i]};
    }
}

/* -- Another pass -- */

static struct slice key_of(struct mutation *m, const struct invocation *invocation)
{
    const struct kube_policy *policy = invocation->of->policy_object->data;
    const struct kube_policy_binding *binding = invocation->of->binding_object->data;
    const struct json_node *metadata = json_node_named(invocation->param, "metadata");
    struct slice namespace = kube_text_copy(m->run.write->arena, metadata, "namespace");
    struct slice name = kube_text_copy(m->run.write->arena, metadata, "name");
    return kube_policy_format(&m->run, "%.*s %.*s %.*s %.*s", SLICE_ARGS(policy->name),
                              SLICE_ARGS(binding->name), SLICE_ARGS(namespace), SLICE_ARGS(name));
}

/* The keys are in the order of the first pass, which is usually that of this one. */
static bool runs_again(struct mutation *m, const struct invocation *invocation)
{
    enum { KEYS_PER_COST = 16 };
    const struct kube_policy *policy = invocation->of->policy_object->data;
    const struct kube_mutating *mutating = m->mutating;
    if (!policy->reinvoked)
        return false;
    struct slice key = key_of(m, invocation);
    size_t looked = 0;
    bool found = false;
    for (; looked < mutating->key_count && !found; looked++, m->next_key++)
        found = slice_equal(mutating->keys[m->next_key % mutating->key_count], key);
    kube_evaluation_charge(&m->run.limit, looked / KEYS_PER_COST);
    return found;
}

/* keys has room for all invocations. */
static void remember(struct mutation *m, const struct invocation *invocation)
{
    struct kube_mutating *to = m->mutating;
    struct slice key = key_of(m, invocation);
    if (!to->keys)
        to->keys = arena_calloc(to->arena, m->count, sizeof(*to->keys));
    if (!to->keys || arena_dup(to->arena, key, &to->keys[to->key_count]) != ST_OK)
        m->run.no_memory = true;
    else
        to->key_count++;
}

/* -- Apply configurations -- */

/* ".spec.template", the path of a value within the object. */
static enum status append_step(struct buf *path, struct arena *arena, struct slice name)
{
    struct field_element element = field_name(name);
    return field_element_append(&element, arena, path);
}

/* Lists and maps that the type owns as a whole would lose what the configuration does not name. */
static enum status find_atomics(struct mutation *m, struct apply_type type,
                                const struct json_node *value, struct buf *path, struct buf *found)
{
    struct apply_rules rules = apply_rules_of(type);
    unsigned forms = apply_rules_forms(&rules, value);
    bool is_map = value->type == JSON_TYPE_OBJECT && forms & APPLY_FORM_MAP;
    bool is_list = value->type == JSON_TYPE_ARRAY && forms & APPLY_FORM_LIST;
    size_t length = path->len;
    if ((is_map && rules.map_atomic) || (is_list && rules.list_atomic))
        TRY(buf_append_format(found, "%s%.*s", found->len ? ", " : "",
                              SLICE_ARGS(buf_slice(path))));
    size_t index = 0;
    for (const struct json_node *item = is_map || is_list ? value->first : NULL; item;
         item = item->next, index++) {
        bool named = false;
        struct apply_type below = rules.item;
        if (is_map) {
            below = apply_rules_member(type, &rules, item->key, &named);
            if (!named)
                continue;
            TRY(append_step(path, m->run.write->arena, item->key));
        } else {
            TRY(buf_append_format(path, "[%zu]", index));
        }
        TRY(find_atomics(m, below, item, path, found));
        path->len = length;
    }
    return ST_OK;
}

/* A null that has passed for a number. */
static bool has_null(const struct json_node *value)
{
    if (value->type < JSON_TYPE_ARRAY)
        return value->type == JSON_TYPE_NUMBER &&
               value->text.ptr == (const uint8_t *)kube_created_null;
    for (const struct json_node *item = value->first; item; item = item->next)
        if (has_null(item))
            return true;
    return false;
}

static struct slice no_memory(struct mutation *m)
{
    m->run.no_memory = true;
    return SLICE_EMPTY;
}

/* One error in the line, several in lines of their own. */
static struct slice list_faults(struct mutation *m, struct slice faults, size_t count)
{
    AUTO(buf_fini) struct buf text = {0};
    enum status status = count > 1 ? buf_append_text(&text, "errors:") : ST_OK;
    while (faults.len && status == ST_OK) {
        struct slice line = slice_cut(&faults, '\n');
        status = buf_append_format(&text, "%s%.*s", count > 1 ? "\n  " : "", SLICE_ARGS(line));
    }
    if (status != ST_OK)
        return no_memory(m);
    return kube_policy_format(
        &m->run, "error applying patch: failed to convert patch object to typed object: %.*s",
        SLICE_ARGS(buf_slice(&text)));
}

static struct slice check_config(struct mutation *m, struct apply_type type,
                                 const struct json_node *config)
{
    AUTO(buf_fini) struct buf faults = {0}, path = {0}, atomics = {0};
    size_t count;
    if (typed_validate(m->run.write->arena, type, config, &faults, &count) != ST_OK)
        return no_memory(m);
    if (count)
        return list_faults(m, buf_slice(&faults), count);
    if (has_null(config))
        return SLICE_LITERAL("error applying patch: failed to convert patch object to typed "
                             "object: expected numeric (int or float), got structpb.NullValue");
    if (find_atomics(m, type, config, &path, &atomics) != ST_OK)
        return no_memory(m);
    if (!atomics.len)
        return SLICE_EMPTY;
    return kube_policy_format(&m->run,
                              "error applying patch: invalid ApplyConfiguration: may not mutate "
                              "atomic arrays, maps or structs: %.*s",
                              SLICE_ARGS(buf_slice(&atomics)));
}

/* What is only posted to an object has no schema in the documents of its group and version, where
 * Kubernetes looks for it. */
static bool find_type(struct mutation *m, const struct kube_kind *kind, struct apply_type *ret_type)
{
    struct kube_custom *custom = kube_custom_of(kind);
    if (kind == &m->posted)
        return false;
    *ret_type =
        custom ? (struct apply_type){.kind = APPLY_TYPE_RESOURCE, .of = kube_custom_schema(custom)}
               : (struct apply_type){.kind = APPLY_TYPE_MESSAGE, .of = kube_type_of_kind(kind)};
    return ret_type->of;
}

/* As if the object had been decoded into Go's types. */
static struct slice fit(struct mutation *m, struct apply_type type, const char *version,
                        const struct kube_kind *kind, struct json_node *object)
{
    AUTO(buf_fini) struct buf unknown = {0};
    struct error why = {0};
    if (type.kind != APPLY_TYPE_MESSAGE)
        return SLICE_EMPTY;
    apply_drop_lost(type, object);
    enum status status = kube_strict(type.of, object, &unknown, &why);
    if (status == ST_OK)
        return SLICE_EMPTY;
    if (status != ST_INVALID)
        return no_memory(m);
    bool bytes = strncmp(why.text, "illegal base64", strlen("illegal base64")) == 0;
    return kube_policy_format(&m->run,
                              "unable to convert unstructured object to %s%s, Kind=%s: %s%s",
                              strchr(version, '/') ? "" : "/", version, kind->kind,
                              bytes ? "error decoding from json: " : "", why.text);
}

/* The object with the configuration, or the error. */
static struct slice apply_config(struct mutation *m, const struct kube_kind *kind,
                                 struct json_node *config, struct json_node **ret_object)
{
    struct arena *arena = m->arena;
    struct error why = {0};
    struct typed typed = {.arena = arena, .why = &why};
    struct apply_type type;
    char version[KUBE_API_VERSION_BYTES];
    if (!find_type(m, kind, &type))
        return kube_policy_format(&m->run,
                                  "error applying patch: failed to convert patch object to typed "
                                  "object: no corresponding type for %s/%s, Kind=%s",
                                  kind->group, kind->version, kind->kind);
    kube_kind_api_version(kind, version);
    if (!kube_mutated_name(m->arena, kind, config))
        return SLICE_EMPTY;
    struct slice fault = check_config(m, type, config);
    if (fault.len || m->run.no_memory)
        return fault;
    enum status status = typed_merge(&typed, type, m->object, config, ret_object);
    if (status == ST_OK && *ret_object)
        return fit(m, type, version, kind, *ret_object);
    if (status == ST_NOMEM)
        return no_memory(m);
    return kube_policy_format(&m->run, "error applying patch: failed to merge patch: %s", why.text);
}

/* -- JSON patches -- */

static bool test_has_failed(const struct error *error)
{
    static const char end[] = "test failed";
    size_t length = strlen(error->text);
    return length >= strlen(end) && strcmp(error->text + length - strlen(end), end) == 0;
}

/* A test that fails means that the patch has nothing to do: *ret_object stays NULL. */
static struct slice apply_patch(struct mutation *m, const struct kube_kind *kind,
                                const struct json_node *patch, struct json_node **ret_object)
{
    struct error why = {0};
    struct json_node *copy = json_node_copy(m->arena, m->object);
    if (!copy)
        return no_memory(m);
    enum status status = patch_json(m->arena, copy, patch, ret_object, &why);
    if (status == ST_NOMEM)
        return no_memory(m);
    if (status == ST_OK) {
        /* What cannot be decoded is not the policy's fault, for Kubernetes. */
        m->denied = !kube_mutated_decode(&m->run, m->arena, kind, *ret_object, true);
        return SLICE_EMPTY;
    }
    *ret_object = NULL;
    return test_has_failed(&why) ? SLICE_EMPTY
                                 : kube_policy_format(&m->run, "JSON Patch: %s", why.text);
}

/* -- Mutations -- */

static uint64_t count_nodes(const struct json_node *node)
{
    uint64_t count = 1;
    for (const struct json_node *child = node->first; child; child = child->next)
        count += count_nodes(child);
    return count;
}

/* What the expression of a mutation has created, as JSON. NULL: *ret_why says why not, or the limit
 * of the write is reached, or there is no memory. */
static struct json_node *create(struct mutation *m, struct kube_policy_round *r,
                                const struct kube_mutation *mutation, struct cel_value value,
                                struct slice *ret_why)
{
    struct kube_evaluation_limit *limit = &m->run.limit;
    uint64_t most = limit->left < CREATED_STEPS_MAX ? limit->left : CREATED_STEPS_MAX;
    struct cel_work work = {.arena = &r->arena, .steps_left = (int64_t)most};
    struct kube_created created = {.arena = m->arena, .work = &work};
    struct json_node *made = mutation->patches ? kube_created_patch(&created, value)
                                               : kube_created_object(&created, value);
    limit->reached |= work.steps_left < 0 && most < CREATED_STEPS_MAX;
    kube_evaluation_charge(limit, most - (uint64_t)(work.steps_left > 0 ? work.steps_left : 0));
    if (!made && !limit->reached)
        *ret_why = created.why.len ? created.why : no_memory(m);
    return limit->reached ? NULL : made;
}

/* The value of an expression, carried out. */
static struct slice carry_out(struct mutation *m, struct kube_policy_round *r,
                              const struct kube_mutation *mutation, const struct kube_kind *kind,
                              struct cel_value value)
{
    struct json_node *object = NULL;
    struct slice why = SLICE_EMPTY;
    struct json_node *made = create(m, r, mutation, value, &why);
    if (!made)
        return why;
    kube_evaluation_charge(&m->run.limit, CHANGE_COST + NODE_COST * count_nodes(m->object));
    if (m->run.limit.reached)
        return SLICE_EMPTY;
    why = mutation->patches ? apply_patch(m, kind, made, &object)
                            : apply_config(m, kind, made, &object);
    if (why.len || m->run.no_memory || m->denied)
        return why;
    /* Kubernetes cannot go back to the version of the request from another one of its own. */
    const struct kube_kind *asked = m->run.write->request.kind;
    if (!m->own && kind != asked && !(kind->flags & KUBE_CUSTOM))
        return kube_policy_format(&m->run, "converting (%s.%s) to (%s.%s): unknown conversion",
                                  kind->version, kind->kind, asked->version, asked->kind);
    m->succeeded = true;
    if (!object)
        return SLICE_EMPTY;
    if (!kube_mutated_complete(&m->run, m->arena, kind, object))
        return no_memory(m);
    m->object = object;
    return SLICE_EMPTY;
}

static struct slice mutate(struct mutation *m, const struct invocation *invocation,
                           const struct kube_mutation *mutation, struct kube_policy_round *r)
{
    const struct kube_expression *expression = &mutation->expression;
    if (!expression->program)
        return expression->error;
    kube_policy_begin_list(r, KUBE_MUTATION_COST_MAX);
    struct kube_policy_result result = kube_policy_evaluate(r, expression);
    if (r->error.len)
        return r->error;
    if (result.error.len || kube_policy_round_over(r))
        return result.error;
    return carry_out(m, r, mutation, m->own ? m->own : invocation->kind, result.value);
}

/* -- The memory of objects -- */

static void open_arena(struct mutation *m, struct arena *arena)
{
    arena_init(arena, NULL, 0, m->mutating->arena->limit_bytes);
    arena_charge(arena, m->mutating->arena->account);
    m->arena = arena;
}

/* The old arena contains nothing but the object that is used any more. */
static void drop_garbage(struct mutation *m)
{
    struct arena *full = m->arena;
    if (full->held_bytes - m->held_bytes <= GARBAGE_BYTES_MAX || arena_ran_out(full))
        return;
    open_arena(m, &m->arenas[full == &m->arenas[0]]);
    if (m->object != m->run.write->object)
        m->object = kube_match_keep(m->arena, m->object);
    m->run.no_memory |= !m->object;
    m->held_bytes = m->arena->held_bytes;
    arena_fini(full);
}

/* -- Versions -- */

static bool convert_by_webhook(struct mutation *m, const struct kube_kind *to)
{
    static const struct kube_policy plain;
    struct kube_policy_write *write = m->run.write;
    struct slice error = SLICE_EMPTY;
    /* Nothing was mutated: the objects are known in all versions that match. */
    if (!m->succeeded) {
        m->run.no_memory = !kube_policy_inputs_see(write, &plain, to, write->object, &m->object);
        return !m->run.no_memory;
    }
    /* What follows from a question that has no answer yet is not sent. */
    if (write->permissions->unknown)
        return false;
    const struct json_node *made = kube_policy_move(write, m->arena, to, m->object, &error);
    if (error.len) {
        m->denied = true;
        (void)kube_policy_fail_internal(&m->run, "failed to convert object: ", error);
        return false;
    }
    m->run.no_memory = !made && !write->sights->leaving;
    if (made)
        m->object = made;
    return made;
}

static bool convert_here(struct mutation *m, const struct kube_kind *to)
{
    struct json_node *copy = json_node_copy(m->arena, m->object);
    m->run.no_memory = !copy || !kube_policy_convert(m->arena, m->kind, to, copy);
    if (copy)
        m->object = copy;
    return !m->run.no_memory;
}

/*
 * The object as the matching rule sees it, or as the request does. It stays in a version while
 * policies of the same one change it. False: there is no memory, a webhook has to convert it first
 * (sights->leaving), or has failed to, which denies the request; or there is a question to be
 * answered before.
 */
static bool convert(struct mutation *m, const struct kube_kind *to)
{
    const struct kube_policy_write *write = m->run.write;
    const struct kube_kind *asked = write->request.kind;
    if (m->own || m->kind == to)
        return true;
    if (to == asked && !m->succeeded)
        m->object = write->object;
    else if (kube_policy_converts_by_webhook(write, to == asked ? m->kind : to)
                 ? !convert_by_webhook(m, to)
                 : !convert_here(m, to))
        return false;
    m->kind = to;
    return true;
}

static void invoke(struct mutation *m, const struct invocation *invocation)
{
    const struct kube_policy *policy = invocation->of->policy_object->data;
    struct kube_policy_round r = {
        .run = &m->run, .policy = policy, .binding = invocation->of->binding_object->data};
    struct slice error = SLICE_EMPTY;
    bool meets = false;
    if ((m->mutating->again && !runs_again(m, invocation)) || !convert(m, invocation->kind))
        return;
    for (size_t i = 0; i < policy->mutation_count || i == 0; i++) {
        const struct kube_policy_inputs *made =
            kube_policy_inputs_make(m->run.write, policy, invocation->kind, &m->run.inputs);
        struct kube_policy_inputs inputs = made ? *made : (struct kube_policy_inputs){0};
        /* Each mutation sees the object as it is by now. */
        if (!made || !kube_policy_inputs_show(m->run.write, policy, m->object, &inputs.object)) {
            m->run.no_memory = true;
            return;
        }
        if (!kube_policy_round_init(&r, &inputs, invocation->param)) {
            m->run.no_memory = true;
        } else if (i == 0) {
            meets = kube_policy_meets_conditions(&r, &error);
        }
        if (meets && i < policy->mutation_count) {
            struct clock *clock = m->run.write->clock;
            int64_t begin = clock ? clock_mono_ns(clock) : 0;
            error = mutate(m, invocation, &policy->mutations[i], &r);
            kube_policy_note(&r, m->denied ? SLICE_LITERAL("denied") : error,
                             clock ? clock_mono_ns(clock) - begin : 0, NULL);
        }
        kube_policy_round_fini(&r);
        if (error.len && !policy->ignores_failures)
            add_error(m, policy, r.binding, error, KUBE_INVALID);
        error = SLICE_EMPTY;
        m->run.no_memory |= arena_ran_out(m->arena);
        drop_garbage(m);
        if (!meets || m->run.no_memory || m->run.limit.reached || m->denied)
            return;
    }
    if (policy->reinvoked && !m->mutating->again)
        remember(m, invocation);
}

/* What follows from the mutations, whose object is still in the memory of the pass. */
static enum kube_policy_verdict conclude(struct mutation *m, size_t keys,
                                         const struct json_node **ret_object)
{
    struct kube_policy_write *write = m->run.write;
    struct kube_mutating *mutating = m->mutating;
    bool asks = kube_policy_waits(write);
    write->cost = write->cost_max - m->run.limit.left;
    if (m->run.no_memory) {
        (void)kube_fail_engine(write->status, ST_NOMEM);
        return KUBE_POLICY_DENIES;
    }
    if (asks || (m->run.limit.reached && write->is_attempt)) {
        mutating->key_count = keys;
        return asks ? KUBE_POLICY_ASKS : KUBE_POLICY_TOO_DEAR;
    }
    kube_policy_give_notes(&m->run);
    if (m->denied)
        return KUBE_POLICY_DENIES;
    if (m->run.limit.reached) {
        struct kube_field_error *cause = arena_calloc(write->arena, 1, sizeof(*cause));
        m->message = SLICE_LITERAL(KUBE_POLICIES_TOO_DEAR);
        if (cause)
            *cause = (struct kube_field_error){.reason = "", .message = m->message};
        kube_policy_set_status(&m->run, m->message, true, KUBE_FORBIDDEN, cause);
        return KUBE_POLICY_DENIES;
    }
    if (m->errors) {
        kube_policy_set_status(&m->run, m->message, false, m->reason, m->errors);
        return KUBE_POLICY_DENIES;
    }
    const struct json_node *object = m->object;
    if (object != write->object)
        object = kube_match_keep(mutating->arena, object);
    if (!object) {
        (void)kube_fail_engine(write->status, ST_NOMEM);
        return KUBE_POLICY_DENIES;
    }
    mutating->mutated = mutating->mutated || m->succeeded;
    *ret_object = object;
    return KUBE_POLICY_ADMITS;
}

static bool goes_on(const struct mutation *m)
{
    const struct kube_policy_sights *sights = m->run.write->sights;
    return !m->run.no_memory && !m->run.limit.reached && !m->denied &&
           !(sights && kube_policy_sights_wanted(sights));
}

enum kube_policy_verdict kube_policy_mutate(struct kube_policy_write *write,
                                            struct kube_mutating *mutating,
                                            const struct json_node **ret_object)
{
    static const struct kube_policy_visitor visitor = {
        .matched = on_matched, .unusable = on_unusable, .mutates = true};
    struct mutation m = {
        .run = {.write = write, .limit = {.left = write->cost_max}, .again = mutating->again},
        .mutating = mutating,
        .object = write->object,
        .kind = write->request.kind};
    m.end = &m.errors;
    m.own = kube_mutated_own_kind(write, &m.posted);
    size_t keys = mutating->key_count;
    open_arena(&m, &m.arenas[0]);
    kube_policy_visit(&m.run, &visitor);
    for (size_t i = 0; i < m.count && goes_on(&m); i++)
        invoke(&m, &m.invocations[i]);
    if (goes_on(&m) && !m.errors)
        (void)convert(&m, write->request.kind);
    m.run.no_memory |= arena_ran_out(mutating->arena) || arena_ran_out(write->arena);
    enum kube_policy_verdict verdict = conclude(&m, keys, ret_object);
    arena_fini(m.arena);
    return verdict;
}

/*
 * Input: a byte that selects a built-in kind, a byte of choices, and up to three JSON texts that
 * are separated by zero bytes: an object, the stored object that it replaces, and an object of
 * another kind on which admission depends, such as a quota. Objects pass defaults, admission and
 * validation as in a create and an update, although their values may be of any type.
 *
 * Besides, what is not checked again because the stored object has it must not hide an error.
 */
#include "cost.h"

#include "base/random.h"
#include "kube/policy/admission/admission.h"
#include "kube/policy/security/settings.h"
#include "kube/types/defaults/defaults.h"
#include "kube/types/validate/validate.h"

#include <assert.h>
#include <stdlib.h>

enum {
    ARENA_BYTES_MAX = 64 << 20,
    TEXTS = 3,
    OF_STATUS = 1, /* the first choice: the status is written */
};

/* One object that a write may depend on, in each role that its kind has. */
struct known {
    struct kube_facts facts;
    struct kube_lookup_object object;
    const struct kube_lookup_object *all;
};

static void know(struct known *known, struct arena *arena, unsigned choice,
                 const struct json_node *tree)
{
    const struct kube_fact_row *row = kube_admission_facts[choice % KUBE_FACTS];
    struct kube_fact_objects *objects = &known->facts.of[choice % KUBE_FACTS];
    const void *data = !tree ? NULL : row->kind.read ? row->kind.read(arena, tree) : tree;
    known->facts.known = (1u << KUBE_FACTS) - 1;
    if (!data)
        return;
    known->object = (struct kube_lookup_object){SLICE_LITERAL("default"), SLICE_LITERAL("known"),
                                                .revision = 1, .data = data};
    known->all = &known->object;
    objects->named = row->named_by || row->is_own_namespace ? &known->object : NULL;
    objects->standard =
        row->is_default && row->is_default(known->object.data) ? &known->object : NULL;
    objects->all = &known->all;
    objects->count = row->all;
}

static void assert_same(const struct kube_field_errors *some, const struct kube_field_errors *all)
{
    const struct kube_field_error *x = some->first, *y = all->first;
    assert(some->count == all->count);
    for (; x && y; x = x->next, y = y->next) {
        assert(slice_equal(x->field, y->field));
        assert(slice_equal(x->message, y->message));
    }
}

struct write {
    struct arena *arena;
    const struct kube_kind *kind;
    enum kube_validated part;
    struct random random;
    struct kube_status status;
    struct known known;
    struct kube_admission admission;
};

static bool validate(struct write *w, const struct json_node *object, const struct json_node *old)
{
    struct kube_field_errors errors = {.arena = w->arena};
    bool valid = kube_validate(w->arena, w->kind, object, old, w->part, false, &errors);
    assert(valid == (!errors.count && !errors.no_memory));
    if (!valid)
        (void)!kube_fail_field_errors(&w->status, &errors, slice_from_text(w->kind->group),
                                      slice_from_text(w->kind->kind), SLICE_LITERAL("name"));
    return valid;
}

static void drop_warning(void *ctx, struct slice warning)
{
    (void)ctx;
    assert(warning.len);
}

/* Whether the object could be stored. */
static bool run(struct write *w, struct json_node *object, const struct json_node *old)
{
    unsigned needs; /* all facts are there */
    struct kube_admission_write admitted = {
        .arena = w->arena,
        .kind = w->kind,
        .subresource = w->part == KUBE_VALIDATE_STATUS ? SLICE_LITERAL("status") : SLICE_EMPTY,
        .operation = old ? KUBE_ADMISSION_UPDATE : KUBE_ADMISSION_CREATE,
        .namespace = SLICE_LITERAL("default"),
        .name = old ? SLICE_LITERAL("name") : SLICE_EMPTY,
        .random = &w->random,
        .object = object,
        .old = old,
        .facts = &w->known.facts,
        .pod_security = &pod_security_unconfigured,
        .status = &w->status,
        .warn = drop_warning,
    };
    admitted.plugins = kube_admission_concerns(&w->admission, w->kind, admitted.subresource,
                                               admitted.operation, &needs);
    w->status = (struct kube_status){0};
    bool whole = old ? kube_default_changed(w->arena, w->kind, old, object, &w->status)
                     : kube_default(w->arena, w->kind, object, &w->status);
    /* A plugin that refuses the object, such as one that misses the service account, must not hide
     * the others from the fuzzer. */
    bool admits = whole && kube_admission_run(&admitted, KUBE_ADMISSION_MUTATE);
    bool valid = whole && validate(w, object, old);
    bool passes = valid && kube_admission_run(&admitted, KUBE_ADMISSION_VALIDATE) &&
                  kube_admission_run(&admitted, KUBE_ADMISSION_CHARGE);
    return admits && passes;
}

/* Writes to an object name it, so that an update never changes the name. */
static bool have_same_name(const struct json_node *object, const struct json_node *old)
{
    const struct json_node *name = json_node_path(object, "metadata.name");
    const struct json_node *old_name = json_node_path(old, "metadata.name");
    return name && old_name && json_node_equal(name, old_name);
}

/* Namespaces may have labels that configure plugins. */
static const struct kube_lookup_peek not_empty = {0};

static void run_texts(struct arena *arena, const struct kube_kind *kind, unsigned choices,
                      const struct slice *texts)
{
    struct json_node *trees[TEXTS] = {NULL}, *created;
    struct error error;
    struct write w = {
        .arena = arena,
        .kind = kind,
        .part = choices & OF_STATUS ? KUBE_VALIDATE_STATUS : KUBE_VALIDATE_OBJECT,
        .admission = {.set = kube_admission_default(true), .labelled = &not_empty},
    };
    for (size_t i = 0; i < TEXTS; i++)
        if (json_tree_read(arena, texts[i], &trees[i], &error) != ST_OK)
            trees[i] = NULL;
    if (!trees[0] || trees[0]->type != JSON_TYPE_OBJECT)
        return;
    random_init(&w.random, 1);
    know(&w.known, arena, choices >> 1, trees[2]);
    created = json_node_copy(arena, trees[0]);
    if (created)
        (void)!run(&w, created, NULL);
    if (!trees[1] || trees[1]->type != JSON_TYPE_OBJECT)
        return;
    /* If two objects could be stored, the second is compared with the first. */
    struct kube_field_errors some = {.arena = arena}, all = {.arena = arena};
    bool stored = run(&w, trees[1], NULL);
    (void)!run(&w, trees[0], trees[1]);
    if (!stored || w.part != KUBE_VALIDATE_OBJECT || !have_same_name(trees[0], trees[1]))
        return;
    (void)!kube_validate(arena, kind, trees[0], trees[1], w.part, false, &some);
    (void)!kube_validate_all(arena, kind, trees[0], trees[1], w.part, &all);
    if (!some.no_memory && !all.no_memory)
        assert_same(&some, &all);
}

/* The bytes up to the next zero byte. */
static struct slice next_text(struct slice *rest)
{
    const uint8_t *end = rest->len ? memchr(rest->ptr, 0, rest->len) : NULL;
    struct slice text = {rest->ptr, end ? (size_t)(end - rest->ptr) : rest->len};
    size_t used = text.len + (end != NULL);
    *rest = slice_of(rest->ptr + used, rest->len - used);
    return text;
}

FUZZ_INPUT()
{
    struct arena arena;
    size_t count;
    const struct kube_kind *kinds = kube_builtin_kinds(&count);
    struct slice texts[TEXTS];
    if (size < 2)
        return 0;
    /* A copy of exactly this size, so that sanitizers detect a read past its end. */
    uint8_t *copy = malloc(size - 2 ? size - 2 : 1);
    assert(copy);
    memcpy(copy, data + 2, size - 2);
    struct slice rest = slice_of(copy, size - 2);
    for (size_t i = 0; i < TEXTS; i++)
        texts[i] = next_text(&rest);
    arena_init(&arena, NULL, 0, ARENA_BYTES_MAX);
    run_texts(&arena, &kinds[data[0] % count], data[1], texts);
    arena_fini(&arena);
    free(copy);
    return 0;
}

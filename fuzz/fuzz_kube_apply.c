/*
 * Input: managedFields, an object and a configuration, three JSON texts separated by zero bytes.
 * What can be read is written and read again with the same result; the configuration is applied to
 * the object, also by force, and the object is updated to it.
 */
#include "cost.h"

#include "kube/merge/apply/apply.h"
#include "kube/merge/apply/conflict.h"
#include "kube/merge/apply/fields_v1.h"

#include <stdlib.h>

enum { ARENA_BYTES_MAX = 64 << 20, TEXTS = 3 };

static bool version_known(const struct apply_request *apply, struct slice api_version)
{
    (void)apply;
    return api_version.len;
}

/* Reading what was written gives the same result. */
static void check_again(struct arena *arena, const struct managed *managed)
{
    struct managed again = {.arena = arena};
    struct json_node *list;
    if (managed_write(managed, &list) != ST_OK || managed_read(&again, list) != ST_OK)
        return;
    for (size_t i = 0; i < again.count; i++) {
        const struct managed_entry *entry = managed_find(managed, again.entries[i].id);
        assert(entry && field_set_equal(entry->set, again.entries[i].set));
    }
}

static void run(struct arena *arena, struct apply_type type, struct json_node *const texts[TEXTS],
                bool force)
{
    struct managed managed = {.arena = arena}, updated = {.arena = arena};
    struct error why = {0};
    struct apply_conflicts conflicts;
    struct kube_status status = {0};
    struct json_node *object;
    AUTO(buf_fini) struct buf errors = {0};
    size_t count;
    struct apply_request apply = {
        .typed = {.arena = arena, .why = &why},
        .type = type,
        .manager = {.name = SLICE_LITERAL("m"),
                    .api_version = SLICE_LITERAL("v1"),
                    .applied = true},
        .now = SLICE_LITERAL("2026-11-15T06:00:00Z"),
        .force = force,
        .version_known = version_known,
    };
    if (managed_read(&managed, texts[0]) != ST_OK || managed_read(&updated, texts[0]) != ST_OK ||
        typed_validate(arena, type, texts[2], &errors, &count) != ST_OK)
        return;
    check_again(arena, &managed);
    enum status applied = apply_config(&apply, texts[1], texts[2], &managed, &object, &conflicts);
    if (applied == ST_EXISTS)
        kube_fail_apply_conflict(&status, arena, &conflicts);
    if (applied == ST_OK)
        check_again(arena, &managed);
    apply.manager.applied = false;
    if (apply_update(&apply, texts[1], texts[2], &updated) == ST_OK)
        check_again(arena, &updated);
}

FUZZ_INPUT()
{
    struct arena arena;
    struct error error;
    struct json_node *texts[TEXTS];
    size_t found = 0;
    if (!size)
        return 0;
    struct apply_type type = {.kind = APPLY_TYPE_DEDUCED};
    if (data[0] & 1) {
        type.kind = APPLY_TYPE_MESSAGE;
        type.of = kube_type_find(SLICE_LITERAL("v1"), SLICE_LITERAL("Pod"));
    }
    /* A copy of exactly this size, so that sanitizers detect a read past its end. */
    uint8_t *copy = malloc(size);
    assert(copy);
    memcpy(copy, data, size);
    arena_init(&arena, NULL, 0, ARENA_BYTES_MAX);
    struct slice rest = slice_of(copy + 1, size - 1);
    while (found < TEXTS) {
        const uint8_t *zero = rest.len ? memchr(rest.ptr, 0, rest.len) : NULL;
        size_t len = zero ? (size_t)(zero - rest.ptr) : rest.len;
        if (json_tree_read(&arena, slice_sub(rest, 0, len), &texts[found], &error) != ST_OK)
            break;
        found++;
        len = size_min(len + 1, rest.len);
        rest = slice_sub(rest, len, rest.len - len);
    }
    if (found == TEXTS)
        run(&arena, type, texts, data[0] & 2);
    arena_fini(&arena);
    free(copy);
    return 0;
}

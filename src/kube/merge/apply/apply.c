#include "kube/merge/apply/apply.h"

#include <stdlib.h>

static enum status combine(const struct apply_request *apply, enum field_operation operation,
                           const struct field_set *a, const struct field_set *b,
                           const struct field_set **ret_set)
{
    return field_set_combine(apply->typed.arena, operation, a, b, ret_set);
}

static enum status without_identity(const struct apply_request *apply, const struct field_set *set,
                                    const struct field_set **ret_set)
{
    return combine(apply, FIELD_DIFFERENCE, set, &managed_unowned, ret_set);
}

static enum status without_reset(const struct apply_request *apply, const struct field_set *set,
                                 const struct field_set **ret_set)
{
    return combine(apply, FIELD_RECURSIVE_DIFFERENCE, set, apply->reset, ret_set);
}

/*
 * Removes entries of versions that no longer exist, and adapts the others to types that have become
 * atomic since. Entries also come from clients and may say anything.
 */
static enum status reconcile_managers(const struct apply_request *apply, struct managed *managed)
{
    for (size_t i = managed->count; i; i--) {
        struct managed_entry *entry = &managed->entries[i - 1];
        if (!apply->version_known(apply, entry->manager.api_version))
            managed_drop(managed, entry);
        else
            TRY(typed_reconcile(&apply->typed, apply->type, entry->set, &entry->set));
    }
    return ST_OK;
}

/* -- Effect of a change on the other managers -- */

struct difference {
    const struct field_set *set;     /* fields added or modified */
    const struct field_set *removed; /* fields that no longer exist */
};

static enum status find_difference(const struct apply_request *apply, const struct json_node *live,
                                   const struct json_node *object,
                                   struct difference *ret_difference)
{
    const struct field_set *marked;
    struct arena *arena = apply->typed.arena;
    TRY(typed_compare(&apply->typed, apply->type, live, object, &marked));
    TRY(without_reset(apply, marked, &marked));
    TRY(field_set_select(arena, marked, FIELD_ADDED | FIELD_MODIFIED, &ret_difference->set));
    return field_set_select(arena, marked, FIELD_REMOVED, &ret_difference->removed);
}

static int conflict_order(const void *a, const void *b)
{
    return slice_compare(((const struct apply_conflict *)a)->id,
                         ((const struct apply_conflict *)b)->id);
}

static enum status find_conflicts(const struct apply_request *apply, const struct managed *managed,
                                  struct slice self, const struct difference *difference,
                                  struct apply_conflicts *conflicts)
{
    *conflicts = (struct apply_conflicts){0};
    conflicts->list =
        arena_calloc(apply->typed.arena, managed->count + 1, sizeof(*conflicts->list));
    if (!conflicts->list)
        return ST_NOMEM;
    for (size_t i = 0; i < managed->count; i++) {
        const struct managed_entry *entry = &managed->entries[i];
        const struct field_set *set;
        if (slice_equal(entry->id, self))
            continue;
        TRY(combine(apply, FIELD_INTERSECTION, entry->set, difference->set, &set));
        if (!set)
            continue;
        conflicts->list[conflicts->count++] =
            (struct apply_conflict){.manager = entry->manager, .id = entry->id, .set = set};
        conflicts->fields += field_set_count(set);
    }
    qsort(conflicts->list, conflicts->count, sizeof(*conflicts->list), conflict_order);
    return ST_OK;
}

static enum status take_from_others(const struct apply_request *apply, struct managed *managed,
                                    struct slice self, const struct difference *difference)
{
    for (size_t i = managed->count; i; i--) {
        struct managed_entry *entry = &managed->entries[i - 1];
        if (slice_equal(entry->id, self))
            continue;
        TRY(combine(apply, FIELD_DIFFERENCE, entry->set, difference->set, &entry->set));
        TRY(combine(apply, FIELD_DIFFERENCE, entry->set, difference->removed, &entry->set));
        if (!entry->set)
            managed_drop(managed, entry);
    }
    return ST_OK;
}

/* -- Updating -- */

enum status apply_update(const struct apply_request *apply, const struct json_node *live,
                         const struct json_node *object, struct managed *managed)
{
    struct difference difference;
    struct managed_entry *entry;
    const struct field_set *set;
    struct slice id;
    TRY(reconcile_managers(apply, managed));
    TRY(find_difference(apply, live, object, &difference));
    TRY(take_from_others(apply, managed, SLICE_EMPTY, &difference));
    TRY(without_identity(apply, difference.set, &set));
    if (!set)
        return managed_cap(managed);
    TRY(managed_id(apply->typed.arena, &apply->manager, &id));
    entry = managed_find(managed, id);
    if (entry)
        TRY(combine(apply, FIELD_UNION, set, entry->set, &set));
    TRY(managed_set(managed, &apply->manager, set, &entry));
    entry->time = apply->now;
    return managed_cap(managed);
}

/* -- Applying -- */

struct pruning {
    const struct apply_request *apply;
    const struct json_node *merged;
    const struct field_set *merged_fields; /* including named fields that lead to members */
};

static enum status with_named(const struct apply_request *apply, const struct field_set *set,
                              const struct field_set **ret_set)
{
    return typed_with_named(&apply->typed, apply->type, set, ret_set);
}

/* The fields of the merged object that the pruned one lacks. */
static enum status missing(const struct pruning *p, const struct json_node *pruned,
                           const struct field_set **ret_set)
{
    const struct field_set *set;
    TRY(typed_fields(&p->apply->typed, p->apply->type, pruned, &set));
    TRY(with_named(p->apply, set, &set));
    return combine(p->apply, FIELD_DIFFERENCE, p->merged_fields, set, ret_set);
}

static enum status pruned_of(const struct pruning *p, const struct field_set *set,
                             struct json_node **ret_object)
{
    return typed_without(&p->apply->typed, p->apply->type, p->merged, set, ret_object);
}

/*
 * Removes the fields that the manager applied the last time but not now, unless others own them.
 * Removing a field also removes everything below it, so fields below that the manager did not own
 * are put back.
 */
static enum status prune(const struct apply_request *apply, const struct json_node *merged,
                         const struct managed *managed, const struct field_set *last,
                         struct json_node **ret_object)
{
    struct pruning p = {.apply = apply, .merged = merged};
    const struct field_set *set, *owned = NULL;
    struct json_node *pruned;
    TRY(with_named(apply, last, &last));
    TRY(typed_fields(&apply->typed, apply->type, merged, &set));
    TRY(with_named(apply, set, &p.merged_fields));
    TRY(pruned_of(&p, last, &pruned));
    for (size_t i = 0; i < managed->count; i++)
        TRY(combine(apply, FIELD_UNION, owned, managed->entries[i].set, &owned));
    TRY(with_named(apply, owned, &owned));
    TRY(missing(&p, pruned, &set));
    TRY(combine(apply, FIELD_DIFFERENCE, set, owned, &set));
    TRY(pruned_of(&p, set, &pruned));
    TRY(missing(&p, pruned, &set));
    TRY(combine(apply, FIELD_INTERSECTION, set, last, &set));
    return pruned_of(&p, set, ret_object);
}

/*
 * Whether pruning would remove nothing: the manager still applies all its earlier fields, and every
 * other field has an owner. Checking this first saves the memory that pruning needs.
 */
static enum status prunes_nothing(const struct apply_request *apply, const struct json_node *merged,
                                  const struct managed *managed, const struct field_set *last,
                                  const struct field_set *now, bool *ret_nothing)
{
    const struct field_set *set;
    TRY(combine(apply, FIELD_DIFFERENCE, last, now, &set));
    *ret_nothing = !last;
    if (set || !last)
        return ST_OK;
    TRY(typed_fields(&apply->typed, apply->type, merged, &set));
    TRY(combine(apply, FIELD_DIFFERENCE, set, now, &set));
    TRY(without_identity(apply, set, &set));
    TRY(without_reset(apply, set, &set));
    for (size_t i = 0; set && i < managed->count; i++)
        TRY(combine(apply, FIELD_DIFFERENCE, set, managed->entries[i].set, &set));
    *ret_nothing = !set;
    return ST_OK;
}

static enum status merge(const struct apply_request *apply, const struct json_node *live,
                         const struct json_node *config, struct managed *managed, struct slice id,
                         struct json_node **ret_object)
{
    struct managed_entry *entry = managed_find(managed, id);
    const struct field_set *last = entry ? entry->set : NULL, *set;
    bool nothing;
    TRY(typed_merge(&apply->typed, apply->type, live, config, ret_object));
    TRY(typed_fields(&apply->typed, apply->type, config, &set));
    TRY(without_reset(apply, set, &set));
    TRY(managed_set(managed, &apply->manager, set, &entry));
    if (!*ret_object)
        return ST_INVALID;
    TRY(prunes_nothing(apply, *ret_object, managed, last, set, &nothing));
    if (nothing)
        return ST_OK;
    return prune(apply, *ret_object, managed, last, ret_object);
}

enum status apply_config(const struct apply_request *apply, const struct json_node *live,
                         const struct json_node *config, struct managed *managed,
                         struct json_node **ret_object, struct apply_conflicts *ret_conflicts)
{
    struct difference difference;
    struct managed_entry *entry;
    struct json_node *object;
    const struct field_set *set;
    struct slice id;
    TRY(reconcile_managers(apply, managed));
    TRY(managed_id(apply->typed.arena, &apply->manager, &id));
    TRY(merge(apply, live, config, managed, id, &object));
    TRY(find_difference(apply, live, object, &difference));
    TRY(find_conflicts(apply, managed, id, &difference, ret_conflicts));
    if (ret_conflicts->count && !apply->force)
        return ST_EXISTS;
    TRY(take_from_others(apply, managed, id, &difference));
    entry = managed_find(managed, id);
    if (entry) {
        TRY(without_identity(apply, entry->set, &set));
        TRY(managed_set(managed, &apply->manager, set, &entry));
    }
    bool same = json_node_equal(live, object);
    *ret_object = same ? NULL : object;
    if (entry && !same)
        entry->time = apply->now;
    return ST_OK;
}

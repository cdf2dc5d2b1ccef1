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

/* -- Versions -- */

/* An object in a version. */
struct versioned {
    struct slice version;
    struct apply_type type;
    const struct json_node *object; /* may be NULL: there is none */
};

static struct versioned own_version(const struct apply_request *apply,
                                    const struct json_node *object)
{
    return (struct versioned){apply->manager.api_version, apply->type, object};
}

static enum status convert(const struct apply_request *apply, struct versioned from,
                           struct slice version, struct versioned *ret_to)
{
    struct json_node *object;
    *ret_to = from;
    if (!apply->in_version || !from.object || slice_equal(from.version, version))
        return ST_OK;
    ret_to->version = version;
    TRY(apply->in_version(apply, from.object, version, &ret_to->type, &object));
    ret_to->object = object;
    return ST_OK;
}

/*
 * Removes entries of versions that no longer exist, and adapts the others to types that have become
 * atomic since. Entries also come from clients and may say anything.
 */
static enum status reconcile_managers(const struct apply_request *apply, struct managed *managed,
                                      const struct json_node *live)
{
    for (size_t i = managed->count; i; i--) {
        struct managed_entry *entry = &managed->entries[i - 1];
        struct versioned in;
        if (!apply->version_known(apply, entry->manager.api_version)) {
            managed_drop(managed, entry);
            continue;
        }
        TRY(convert(apply, own_version(apply, live), entry->manager.api_version, &in));
        TRY(typed_reconcile(&apply->typed, in.type, entry->set, &entry->set));
    }
    return ST_OK;
}

/* -- Effect of a change on the other managers -- */

struct difference {
    struct slice version;
    const struct field_set *set;     /* fields added or modified */
    const struct field_set *removed; /* fields that no longer exist */
};

/* The same change in each version that a manager has. */
struct differences {
    struct difference *list; /* the version of the request first */
    size_t count;
};

static enum status find_difference(const struct apply_request *apply, const struct json_node *live,
                                   const struct json_node *object, struct slice version,
                                   struct difference *ret_difference)
{
    const struct field_set *marked;
    struct arena *arena = apply->typed.arena;
    struct versioned before, after;
    TRY(convert(apply, own_version(apply, live), version, &before));
    TRY(convert(apply, own_version(apply, object), version, &after));
    TRY(typed_compare(&apply->typed, after.type, before.object, after.object, &marked));
    TRY(without_reset(apply, marked, &marked));
    ret_difference->version = version;
    TRY(field_set_select(arena, marked, FIELD_ADDED | FIELD_MODIFIED, &ret_difference->set));
    return field_set_select(arena, marked, FIELD_REMOVED, &ret_difference->removed);
}

static const struct difference *difference_of(const struct apply_request *apply,
                                              const struct differences *all,
                                              const struct managed_entry *entry)
{
    for (size_t i = 0; apply->in_version && i < all->count; i++)
        if (slice_equal(all->list[i].version, entry->manager.api_version))
            return &all->list[i];
    return apply->in_version ? NULL : all->list;
}

/* self: the entry of this manager is not compared; empty: each is. */
static enum status find_differences(const struct apply_request *apply, const struct json_node *live,
                                    const struct json_node *object, const struct managed *managed,
                                    struct slice self, struct differences *ret_all)
{
    struct differences all = {0};
    all.list = arena_calloc(apply->typed.arena, managed->count + 1, sizeof(*all.list));
    if (!all.list)
        return ST_NOMEM;
    TRY(find_difference(apply, live, object, apply->manager.api_version, &all.list[all.count++]));
    for (size_t i = 0; i < managed->count; i++) {
        const struct managed_entry *entry = &managed->entries[i];
        if (!slice_equal(entry->id, self) && !difference_of(apply, &all, entry))
            TRY(find_difference(apply, live, object, entry->manager.api_version,
                                &all.list[all.count++]));
    }
    *ret_all = all;
    return ST_OK;
}

static int conflict_order(const void *a, const void *b)
{
    return slice_compare(((const struct apply_conflict *)a)->id,
                         ((const struct apply_conflict *)b)->id);
}

static enum status find_conflicts(const struct apply_request *apply, const struct managed *managed,
                                  struct slice self, const struct differences *differences,
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
        TRY(combine(apply, FIELD_INTERSECTION, entry->set,
                    difference_of(apply, differences, entry)->set, &set));
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
                                    struct slice self, const struct differences *differences)
{
    for (size_t i = managed->count; i; i--) {
        struct managed_entry *entry = &managed->entries[i - 1];
        if (slice_equal(entry->id, self))
            continue;
        const struct difference *difference = difference_of(apply, differences, entry);
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
    struct differences differences;
    struct managed_entry *entry;
    const struct field_set *set;
    struct slice id;
    TRY(reconcile_managers(apply, managed, live));
    TRY(find_differences(apply, live, object, managed, SLICE_EMPTY, &differences));
    TRY(take_from_others(apply, managed, SLICE_EMPTY, &differences));
    TRY(without_identity(apply, differences.list[0].set, &set));
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

/* Pruning in one version. */
struct pruning {
    const struct apply_request *apply;
    struct versioned merged;
    const struct field_set *merged_fields; /* including named fields that lead to members */
};

static enum status with_named(const struct pruning *p, const struct field_set *set,
                              const struct field_set **ret_set)
{
    return typed_with_named(&p->apply->typed, p->merged.type, set, ret_set);
}

static enum status begin_pruning(const struct apply_request *apply, struct versioned merged,
                                 struct slice version, struct pruning *p)
{
    const struct field_set *set;
    *p = (struct pruning){.apply = apply};
    TRY(convert(apply, merged, version, &p->merged));
    TRY(typed_fields(&apply->typed, p->merged.type, p->merged.object, &set));
    return with_named(p, set, &p->merged_fields);
}

/* The fields of the merged object that the pruned one lacks, in the version of the pruning. */
static enum status missing(const struct pruning *p, struct versioned pruned,
                           const struct field_set **ret_set)
{
    const struct field_set *set;
    struct versioned in;
    TRY(convert(p->apply, pruned, p->merged.version, &in));
    TRY(typed_fields(&p->apply->typed, p->merged.type, in.object, &set));
    TRY(with_named(p, set, &set));
    return combine(p->apply, FIELD_DIFFERENCE, p->merged_fields, set, ret_set);
}

static enum status pruned_of(const struct pruning *p, const struct field_set *set,
                             struct versioned *ret_pruned)
{
    struct json_node *object;
    *ret_pruned = p->merged;
    TRY(typed_without(&p->apply->typed, p->merged.type, p->merged.object, set, &object));
    ret_pruned->object = object;
    return ST_OK;
}

static bool is_of_version(const struct apply_request *apply, const struct managed_entry *entry,
                          struct slice version)
{
    return !apply->in_version || slice_equal(entry->manager.api_version, version);
}

/* Puts the fields back that managers of this version own. */
static enum status put_back(const struct pruning *p, const struct managed *managed,
                            struct versioned *pruned)
{
    const struct field_set *set, *owned = NULL;
    for (size_t i = 0; i < managed->count; i++)
        if (is_of_version(p->apply, &managed->entries[i], p->merged.version))
            TRY(combine(p->apply, FIELD_UNION, owned, managed->entries[i].set, &owned));
    TRY(with_named(p, owned, &owned));
    TRY(missing(p, *pruned, &set));
    TRY(combine(p->apply, FIELD_DIFFERENCE, set, owned, &set));
    return pruned_of(p, set, pruned);
}

/* Whether an entry before this one has its version, or it is that of the pruning. */
static bool was_put_back(const struct managed *managed, size_t at, struct slice version)
{
    struct slice own = managed->entries[at].manager.api_version;
    bool found = slice_equal(own, version);
    for (size_t i = 0; i < at; i++)
        found = found || slice_equal(managed->entries[i].manager.api_version, own);
    return found;
}

/*
 * Removes the fields that the manager applied the last time but not now, unless others own them.
 * Removing a field also removes everything below it, so fields below that the manager did not own
 * are put back. All of it is in the version that the manager applied the last time.
 */
static enum status prune(const struct apply_request *apply, const struct json_node *merged,
                         const struct managed *managed, const struct field_set *last,
                         struct slice version, const struct json_node **ret_object)
{
    const struct field_set *set;
    struct versioned whole = own_version(apply, merged), pruned;
    struct pruning p, other;
    TRY(begin_pruning(apply, whole, version, &p));
    TRY(with_named(&p, last, &last));
    TRY(pruned_of(&p, last, &pruned));
    TRY(put_back(&p, managed, &pruned));
    for (size_t i = 0; apply->in_version && i < managed->count; i++) {
        if (was_put_back(managed, i, version))
            continue;
        TRY(begin_pruning(apply, whole, managed->entries[i].manager.api_version, &other));
        TRY(put_back(&other, managed, &pruned));
    }
    TRY(missing(&p, pruned, &set));
    TRY(combine(apply, FIELD_INTERSECTION, set, last, &set));
    /* The object that was merged needs no conversion. */
    if (!set) {
        *ret_object = merged;
        return ST_OK;
    }
    TRY(pruned_of(&p, set, &pruned));
    TRY(convert(apply, pruned, apply->manager.api_version, &pruned));
    *ret_object = pruned.object;
    return ST_OK;
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
        if (is_of_version(apply, &managed->entries[i], apply->manager.api_version))
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
    struct slice version = entry ? entry->manager.api_version : SLICE_EMPTY;
    const struct json_node *pruned;
    bool nothing = false;
    TRY(typed_merge(&apply->typed, apply->type, live, config, ret_object));
    TRY(typed_fields(&apply->typed, apply->type, config, &set));
    TRY(without_reset(apply, set, &set));
    TRY(managed_set(managed, &apply->manager, set, &entry));
    if (!*ret_object)
        return ST_INVALID;
    if (!apply->in_version || !last || slice_equal(version, apply->manager.api_version))
        TRY(prunes_nothing(apply, *ret_object, managed, last, set, &nothing));
    if (nothing)
        return ST_OK;
    TRY(prune(apply, *ret_object, managed, last, version, &pruned));
    *ret_object = (struct json_node *)(uintptr_t)pruned; /* made here, or what was merged */
    return ST_OK;
}

enum status apply_config(const struct apply_request *apply, const struct json_node *live,
                         const struct json_node *config, struct managed *managed,
                         struct json_node **ret_object, struct apply_conflicts *ret_conflicts)
{
    struct differences differences;
    struct managed_entry *entry;
    struct json_node *object;
    const struct field_set *set;
    struct slice id;
    TRY(reconcile_managers(apply, managed, live));
    TRY(managed_id(apply->typed.arena, &apply->manager, &id));
    TRY(merge(apply, live, config, managed, id, &object));
    TRY(find_differences(apply, live, object, managed, id, &differences));
    TRY(find_conflicts(apply, managed, id, &differences, ret_conflicts));
    if (ret_conflicts->count && !apply->force)
        return ST_EXISTS;
    TRY(take_from_others(apply, managed, id, &differences));
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

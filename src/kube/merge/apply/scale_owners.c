#include "kube/merge/apply/scale_owners.h"

#include <string.h>

static const char replicas_of_scale[] = "spec.replicas";

bool scale_owns(const struct field_set *set, const char *path)
{
    for (;;) {
        size_t len = strcspn(path, ".");
        struct field_element element = field_name(slice_of(path, len));
        const struct field_entry *entry = field_set_find(set, &element);
        if (!entry)
            return false;
        if (!path[len])
            return entry->marks;
        set = entry->below;
        path += len + 1;
    }
}

/* The set with the member at this path alone. */
static enum status set_of(struct arena *arena, const char *path, const struct field_set **ret_set)
{
    size_t count = 1, at = 0;
    struct slice copy;
    for (const char *c = path; *c; c++)
        count += *c == '.';
    const char **names = arena_calloc(arena, count, sizeof(*names));
    if (!names || arena_dup(arena, slice_of(path, strlen(path) + 1), &copy) != ST_OK)
        return ST_NOMEM;
    char *text = (char *)copy.ptr;
    for (names[at++] = text; (text = strchr(text, '.')) != NULL; names[at++] = text)
        *text++ = '\0';
    return field_set_of_path(arena, names, count, ret_set);
}

/* NULL: the kind has no such version. */
static const struct scale_path *find(const struct scale_paths *paths, struct slice api_version)
{
    for (size_t i = 0; i < paths->count; i++)
        if (slice_equal(paths->items[i].api_version, api_version))
            return &paths->items[i];
    return NULL;
}

enum status scale_owners_of(struct managed *managed, const struct scale_paths *paths)
{
    const struct field_set *replicas;
    size_t kept = 0;
    TRY(set_of(managed->arena, replicas_of_scale, &replicas));
    for (size_t i = 0; i < managed->count; i++) {
        struct managed_entry entry = managed->entries[i];
        const struct scale_path *known = find(paths, entry.manager.api_version);
        if (!known || !known->path || !scale_owns(entry.set, known->path))
            continue;
        entry.set = replicas;
        entry.manager.api_version = SLICE_LITERAL(SCALE_API_VERSION);
        TRY(managed_id(managed->arena, &entry.manager, &entry.id));
        managed->entries[kept++] = entry;
    }
    managed->count = kept;
    return ST_OK;
}

static bool owns_replicas(const struct managed_entry *entry, const struct scale_paths *paths)
{
    const struct scale_path *known = find(paths, entry->manager.api_version);
    return known && known->path && scale_owns(entry->set, known->path);
}

/* A manager of the object stays what it was, or loses the replicas. */
static enum status keep_owner(struct managed_entry entry, const struct scale_paths *paths,
                              const struct managed *scale, struct managed *to)
{
    const struct scale_path *known = find(paths, entry.manager.api_version);
    const struct field_set *replicas;
    if (!known)
        return ST_OK;
    if (owns_replicas(&entry, paths) && !managed_find(scale, entry.id)) {
        TRY(set_of(to->arena, known->path, &replicas));
        TRY(field_set_combine(to->arena, FIELD_DIFFERENCE, entry.set, replicas, &entry.set));
    }
    return entry.set ? managed_add(to, &entry) : ST_OK;
}

enum status scale_owners_put(const struct managed *object, const struct scale_paths *paths,
                             struct slice api_version, const struct managed *scale,
                             struct managed *ret_managed)
{
    const struct field_set *replicas;
    struct managed to = {.arena = object->arena};
    TRY(set_of(to.arena, find(paths, api_version)->path, &replicas));
    for (size_t i = 0; i < object->count; i++)
        TRY(keep_owner(object->entries[i], paths, scale, &to));
    for (size_t i = 0; i < scale->count; i++) {
        struct managed_entry entry = scale->entries[i];
        const struct managed_entry *old = managed_find(object, entry.id);
        if (!scale_owns(entry.set, replicas_of_scale) || (old && owns_replicas(old, paths)))
            continue;
        if (managed_find(&to, entry.id))
            managed_drop(&to, managed_find(&to, entry.id));
        entry.manager.api_version = api_version;
        entry.time = old ? old->time : SLICE_EMPTY;
        entry.set = replicas;
        TRY(managed_add(&to, &entry));
    }
    *ret_managed = to;
    return ST_OK;
}

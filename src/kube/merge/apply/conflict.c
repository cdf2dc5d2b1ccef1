#include "kube/merge/apply/conflict.h"

#include "kube/merge/apply/fields_v1.h"
#include "kube/types/field_errors.h"
#include "kube/types/go_text.h"

enum status apply_conflicts_without(struct arena *arena, struct apply_conflicts *conflicts,
                                    const struct field_set *allowed)
{
    size_t kept = 0;
    conflicts->fields = 0;
    for (size_t i = 0; i < conflicts->count; i++) {
        struct apply_conflict conflict = conflicts->list[i];
        TRY(field_set_combine(arena, FIELD_DIFFERENCE, conflict.set, allowed, &conflict.set));
        if (!conflict.set)
            continue;
        conflicts->list[kept++] = conflict;
        conflicts->fields += field_set_count(conflict.set);
    }
    conflicts->count = kept;
    return ST_OK;
}

/* -- Writing -- */

struct conflict_writer {
    struct arena *arena;
    struct buf message, path;
    struct slice manager; /* `"a" using v1` */
    bool alone;           /* the only conflicting field */
    struct kube_field_error *first, *last;
    size_t listed;
};

static enum status describe(const struct field_manager *manager, struct arena *arena,
                            struct slice *ret_text)
{
    AUTO(buf_fini) struct buf text = {0};
    TRY(go_quote(manager->name, &text));
    if (manager->subresource.len) {
        TRY(buf_append_text(&text, " with subresource "));
        TRY(go_quote(manager->subresource, &text));
    }
    if (!manager->applied)
        TRY(buf_append_format(&text, " using %.*s", SLICE_ARGS(manager->api_version)));
    return arena_dup(arena, buf_slice(&text), ret_text);
}

static enum status write_field(struct conflict_writer *t)
{
    AUTO(buf_fini) struct buf text = {0};
    struct kube_field_error *error;
    if (t->listed++ >= APPLY_CONFLICTS_LISTED_MAX)
        return ST_OK;
    if (!t->alone)
        TRY(buf_append_text(&t->message, "\n- "));
    TRY(buf_append(&t->message, buf_slice(&t->path)));
    error = arena_calloc(t->arena, 1, sizeof(*error));
    if (!error)
        return ST_NOMEM;
    error->reason = "FieldManagerConflict";
    TRY(buf_append_format(&text, "conflict with %.*s", SLICE_ARGS(t->manager)));
    TRY(arena_dup(t->arena, buf_slice(&text), &error->message));
    TRY(arena_dup(t->arena, buf_slice(&t->path), &error->field));
    if (t->last)
        t->last->next = error;
    else
        t->first = error;
    t->last = error;
    return ST_OK;
}

/* Writes the members of a level before the levels below them. */
static enum status write_set(struct conflict_writer *t, const struct field_set *set)
{
    size_t len = t->path.len;
    for (size_t round = 0; round < 2; round++) {
        for (size_t i = 0; set && i < set->count; i++) {
            const struct field_entry *entry = &set->entries[i];
            if (round ? !entry->below : !entry->marks)
                continue;
            TRY(field_element_append(&entry->element, t->arena, &t->path));
            TRY(round ? write_set(t, entry->below) : write_field(t));
            t->path.len = len;
        }
    }
    return ST_OK;
}

static enum status write_all(struct conflict_writer *t, const struct apply_conflicts *conflicts)
{
    t->alone = conflicts->fields == 1;
    TRY(buf_append_format(&t->message, "Apply failed with %zu conflict%s: ", conflicts->fields,
                          t->alone ? "" : "s"));
    for (size_t i = 0; i < conflicts->count; i++) {
        const struct apply_conflict *conflict = &conflicts->list[i];
        TRY(describe(&conflict->manager, t->arena, &t->manager));
        TRY(buf_append_format(&t->message, "%s%s %.*s:%s", i ? "\n" : "",
                              t->alone ? "conflict with" : "conflicts with", SLICE_ARGS(t->manager),
                              t->alone ? " " : ""));
        TRY(write_set(t, conflict->set));
    }
    return ST_OK;
}

bool kube_fail_apply_conflict(struct kube_status *status, struct arena *arena,
                              const struct apply_conflicts *conflicts)
{
    struct conflict_writer t = {.arena = arena};
    struct slice message;
    enum status written = write_all(&t, conflicts);
    if (written == ST_OK)
        written = arena_dup(arena, buf_slice(&t.message), &message);
    buf_fini(&t.message);
    buf_fini(&t.path);
    if (written != ST_OK)
        return kube_fail_engine(status, written);
    status->reason = KUBE_CONFLICT;
    status->long_message = message;
    status->errors = t.first;
    return false;
}

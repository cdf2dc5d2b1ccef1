#include "kube/call/converter_states.h"

#include "base/clock.h"
#include "base/lock.h"
#include "base/xalloc.h"
#include "kube/custom/definition.h"

#include <stdio.h>

enum { NAME_BYTES = 254, UNASKED_MAX = 2 };

struct row {
    char name[NAME_BYTES];  /* the name of the definition */
    bool failed, succeeded; /* calls since the last question */
    bool says;              /* that it fails: the status, at the last question, */
    bool is_changed;        /* or as it has been changed since, if that was possible */
    struct kube_converter_state state;
    int64_t next_ns;  /* when its status may be changed again */
    unsigned unasked; /* rounds of questions without one about it */
};

struct kube_converter_states {
    struct lock lock;
    _Atomic size_t count; /* changed with the lock */
    struct row rows[KUBE_CONVERTER_STATES_MAX];
};

struct kube_converter_states *kube_converter_states_new(void)
{
    struct kube_converter_states *states = xcalloc(1, sizeof(*states));
    lock_init(&states->lock);
    return states;
}

void kube_converter_states_free(struct kube_converter_states *states)
{
    if (!states)
        return;
    lock_fini(&states->lock);
    free(states);
}

size_t kube_converter_states_count(const struct kube_converter_states *states)
{
    return atomic_load_explicit(&states->count, memory_order_relaxed);
}

/* NULL: there is none. */
static struct row *find(struct kube_converter_states *states, struct slice name)
{
    for (size_t i = 0; i < kube_converter_states_count(states); i++)
        if (slice_is(name, states->rows[i].name))
            return &states->rows[i];
    return NULL;
}

/* NULL: there is no room. */
static struct row *add(struct kube_converter_states *states, struct slice name)
{
    size_t count = kube_converter_states_count(states);
    if (count == KUBE_CONVERTER_STATES_MAX || name.len >= NAME_BYTES)
        return NULL;
    struct row *row = &states->rows[count];
    *row = (struct row){.next_ns = INT64_MIN};
    memcpy(row->name, name.ptr, name.len);
    atomic_store_explicit(&states->count, count + 1, memory_order_relaxed);
    return row;
}

static void drop(struct kube_converter_states *states, struct row *row)
{
    size_t last = kube_converter_states_count(states) - 1;
    *row = states->rows[last];
    atomic_store_explicit(&states->count, last, memory_order_relaxed);
}

void kube_converter_states_note(struct kube_converter_states *states, struct slice definition,
                                const char *from, const char *to, enum conversion_failure failure)
{
    bool failed = failure != CONVERSION_FINE;
    if (!failed && !kube_converter_states_count(states))
        return;
    lock_take(&states->lock);
    struct row *row = find(states, definition);
    if (!row && failed)
        row = add(states, definition);
    if (row) {
        row->failed |= failed;
        row->succeeded |= !failed;
    }
    if (row && failed) {
        row->state.failure = failure;
        snprintf(row->state.from, sizeof(row->state.from), "%s", from);
        snprintf(row->state.to, sizeof(row->state.to), "%s", to);
    }
    lock_release(&states->lock);
}

/* What the status should say: the calls since the last question decide, if there were any. */
static void conclude(struct row *row)
{
    row->state.fails = row->failed || (row->state.fails && !row->succeeded);
    row->failed = row->succeeded = false;
}

static void drop_unless_needed(struct kube_converter_states *states, struct row *row,
                               int64_t now_ns)
{
    if (!row->state.fails && !row->says && !row->is_changed && now_ns >= row->next_ns)
        drop(states, row);
}

bool kube_converter_states_have_news(struct kube_converter_states *states, int64_t now_ns)
{
    bool news = false;
    if (!kube_converter_states_count(states))
        return false;
    lock_take(&states->lock);
    for (size_t i = kube_converter_states_count(states); i-- > 0;) {
        struct row *row = &states->rows[i];
        conclude(row);
        news |= now_ns >= row->next_ns && (row->state.fails != row->says || row->is_changed);
        drop_unless_needed(states, row, now_ns);
    }
    lock_release(&states->lock);
    return news;
}

bool kube_converter_states_differ(struct kube_converter_states *states,
                                  const struct kube_definition *definition, int64_t now_ns,
                                  struct kube_converter_state *ret_state)
{
    bool differs = false;
    if (!definition->conversion_failing && !kube_converter_states_count(states))
        return false;
    lock_take(&states->lock);
    struct row *row = find(states, definition->name);
    if (!row && definition->conversion_failing && (row = add(states, definition->name)))
        row->state.fails = true; /* until a call succeeds */
    if (row) {
        conclude(row);
        row->says = definition->conversion_failing;
        row->unasked = 0;
        differs = row->state.fails != row->says && now_ns >= row->next_ns;
        row->is_changed = differs;
    }
    if (differs) {
        *ret_state = row->state;
        row->says = row->state.fails;
        row->next_ns = clock_add(now_ns, KUBE_CONVERTER_PAUSE_S * NS_PER_S);
    } else if (row) {
        drop_unless_needed(states, row, now_ns);
    }
    lock_release(&states->lock);
    return differs;
}

void kube_converter_states_prune(struct kube_converter_states *states)
{
    if (!kube_converter_states_count(states))
        return;
    lock_take(&states->lock);
    for (size_t i = kube_converter_states_count(states); i-- > 0;)
        if (++states->rows[i].unasked > UNASKED_MAX)
            drop(states, &states->rows[i]);
    lock_release(&states->lock);
}

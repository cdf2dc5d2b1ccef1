#include "tier_states.h"

#include "kube_model.h"
#include "operations.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STATES_MAX = 4096, CONTENTS_MAX = 4096, CONTENT_BYTES = 64 };

static struct {
    struct tier_state all[STATES_MAX];
    bool checked[STATES_MAX];
    size_t count, first_unchecked;
    struct {
        char key[KEY_BYTES], text[CONTENT_BYTES];
        int64_t revision;
    } contents[CONTENTS_MAX];
    size_t content_count;
} states;

void tier_states_begin(void)
{
    memset(states.checked, 0, sizeof(states.checked));
    states.count = states.first_unchecked = states.content_count = 0;
}

int64_t tier_version_of(vigil_bytes version)
{
    char text[32] = {0};
    memcpy(text, version.data, size_min(version.size, sizeof(text) - 1));
    return strtoll(text, NULL, 10);
}

void tier_key_of(const vigil_kube_object *object, char ret_key[KEY_BYTES])
{
    vigil_bytes name = vigil_kube_object_name(object);
    snprintf(ret_key, KEY_BYTES, "%s%.*s", KUBE_ROOT, (int)name.size, (const char *)name.data);
}

/* -- Contents -- */

void tier_states_show(const char *key, int64_t revision, const vigil_kube_object *object)
{
    vigil_bytes data, json = vigil_kube_object_json(object);
    char text[CONTENT_BYTES];
    if (!json.size)
        return;
    if (!vigil_json_find(json, "data", &data))
        violation("%s @%lld is shown without data", key, (long long)revision);
    snprintf(text, sizeof(text), "%.*s", (int)data.size, (const char *)data.data);
    for (size_t i = 0; i < states.content_count; i++) {
        if (states.contents[i].revision != revision)
            continue;
        if (strcmp(states.contents[i].key, key) != 0 || strcmp(states.contents[i].text, text) != 0)
            violation("revision %lld is shown as %s with %s, and was %s with %s before",
                      (long long)revision, key, text, states.contents[i].key,
                      states.contents[i].text);
        return;
    }
    if (states.content_count == CONTENTS_MAX)
        return;
    size_t at = states.content_count++;
    snprintf(states.contents[at].key, KEY_BYTES, "%s", key);
    snprintf(states.contents[at].text, CONTENT_BYTES, "%s", text);
    states.contents[at].revision = revision;
}

/* -- States -- */

void tier_state_add_item(struct tier_state *state, const vigil_kube_object *object)
{
    if (state->count == TIER_ITEMS_MAX)
        violation("%s has more than %d objects", state->what, TIER_ITEMS_MAX);
    size_t at = state->count++;
    tier_key_of(object, state->items[at].key);
    state->items[at].revision = tier_version_of(vigil_kube_object_version(object));
    tier_states_show(state->items[at].key, state->items[at].revision, object);
}

void tier_states_add(const struct tier_state *state)
{
    if (!state->is_object && state->revision <= 0)
        violation("%s has no version", state->what);
    operations_see(state->revision);
    if (states.count < STATES_MAX)
        states.all[states.count++] = *state;
    tier_states_check_known();
}

bool tier_scope_has(const struct tier_scope *scope, const struct version *version)
{
    return version && (!scope->group || version->group == scope->group) &&
           (*scope->only ? strcmp(version->key, scope->only) == 0
                         : range_has(KUBE_ROOT, KUBE_ROOT_END, version->key));
}

const struct version *tier_states_next(const struct tier_scope *scope, int64_t after)
{
    for (size_t i = 0; i < history_count(); i++) {
        const struct version *change = history_at(i);
        if (change->revision > after &&
            (tier_scope_has(scope, history_get(change->key, change->revision)) ||
             tier_scope_has(scope, history_get(change->key, change->revision - 1))))
            return change;
    }
    return NULL;
}

/* What is selected at a revision; returns the number. */
static size_t select_at(const struct tier_scope *scope, int64_t revision,
                        const struct version *ret_versions[RANGE_MAX])
{
    const struct version *all[RANGE_MAX];
    size_t count = history_range(KUBE_ROOT, KUBE_ROOT_END, revision, all), selected = 0;
    for (size_t i = 0; i < count; i++)
        if (tier_scope_has(scope, all[i]))
            ret_versions[selected++] = all[i];
    return selected;
}

static const struct version *find(const struct version *versions[], size_t count, const char *key)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(versions[i]->key, key) == 0)
            return versions[i];
    return NULL;
}

/* It has exactly the objects that existed at its revision. */
static void check_items(const struct tier_state *s)
{
    const struct version *expected[RANGE_MAX];
    size_t count = select_at(&s->scope, s->revision, expected);
    for (unsigned i = 0; i < s->count; i++) {
        const struct version *version = find(expected, count, s->items[i].key);
        if (!version || version->revision != s->items[i].revision)
            violation("%s at %lld has %s @%lld, but then it was @%lld", s->what,
                      (long long)s->revision, s->items[i].key, (long long)s->items[i].revision,
                      version ? (long long)version->revision : 0);
    }
    if (s->count != count)
        violation("%s at %lld has %u objects, but then there were %zu", s->what,
                  (long long)s->revision, s->count, count);
}

/* One object was read, as of any time from its revision on. */
static void check_object(const struct tier_state *s)
{
    const struct version *version = history_get(s->scope.only, s->revision);
    if (!version || version->revision != s->revision)
        violation("%s has shown %s @%lld, which is not in the history", s->what, s->scope.only,
                  (long long)s->revision);
}

/* What has happened between the two has left no trace: the same versions of the same objects. */
static bool is_same_state(const struct tier_scope *scope, int64_t a, int64_t b)
{
    const struct version *old[RANGE_MAX], *new[RANGE_MAX];
    size_t count = select_at(scope, a, old);
    if (select_at(scope, b, new) != count)
        return false;
    for (size_t i = 0; i < count; i++)
        if (old[i]->revision != new[i]->revision)
            return false;
    return true;
}

/* A fence compares states (tier/mirror/fence.h): the one that is shown may be older than the floor
 * if it was restored until then, or later. */
static bool was_there_later(const struct tier_state *s)
{
    for (int64_t at = s->floor; at <= history_revision(); at++)
        if (is_same_state(&s->scope, s->revision, at))
            return true;
    return false;
}

static void check(const struct tier_state *s)
{
    if (s->is_object)
        check_object(s);
    else
        check_items(s);
    const struct version *next = tier_states_next(&s->scope, s->revision);
    if (next && next->revision <= s->floor && !was_there_later(s))
        violation("%s at %lld is too old: %s has changed @%lld, and %lld was seen before it began",
                  s->what, (long long)s->revision, next->key, (long long)next->revision,
                  (long long)s->floor);
}

static bool is_known(const struct tier_state *s)
{
    return s->revision <= history_revision() && s->floor <= history_revision();
}

void tier_states_check_known(void)
{
    for (size_t i = states.first_unchecked; i < states.count; i++) {
        if (states.checked[i] || !is_known(&states.all[i]))
            continue;
        states.checked[i] = true;
        check(&states.all[i]);
    }
    while (states.first_unchecked < states.count && states.checked[states.first_unchecked])
        states.first_unchecked++;
}

void tier_states_finish(void)
{
    tier_states_check_known();
    for (size_t i = states.first_unchecked; i < states.count; i++)
        if (!states.checked[i])
            violation("%s has version %lld, but the history ends at %lld", states.all[i].what,
                      (long long)states.all[i].revision, (long long)history_revision());
}

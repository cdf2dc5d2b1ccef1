/*
 * Watches of objects behind a network that breaks (see faults.c): a writer makes a history, and
 * what every watch has delivered must be exactly what follows from it. Watches begin with the state
 * or with a revision, select different objects, and pause now and then.
 */
#include "suite.h"

#include <time.h>

enum { KEYS = 40, CHANGES = 600, WATCHES = 12, EVENTS_MAX = 4 * CHANGES };
enum { DELETED = -1 };

struct change {
    int64_t revision;
    int key;
    long value; /* DELETED: none */
};

/* The history, written by the main thread. */
static struct change history[4 * CHANGES];
static size_t history_count;
static long current[KEYS]; /* DELETED, or the value */

struct event {
    int type;
    bool initial;
    int key;
    long value;
    int64_t revision;
};

struct follower {
    vigil_object_watch *watch;
    int number;
    int64_t from;     /* 0: with the state */
    int64_t state_at; /* revision of the bookmark that ends the state; 0: none yet */
    struct event events[EVENTS_MAX];
    size_t count;
    unsigned batches;
};

static struct follower followers[WATCHES];
static _Atomic long live_values;

/* Every third value is not selected, another third for each watch; the first selects all. */
static bool selects(const struct follower *follower, long value)
{
    return value != DELETED && (follower->number == 0 || value % 3 != follower->number % 3);
}

static int decode(vigil_object *object, vigil_error *error, void *user)
{
    char text[32];
    long *value = malloc(sizeof(*value));
    (void)error;
    (void)user;
    CHECK(value && object->value.size < sizeof(text));
    memcpy(text, object->value.data, object->value.size);
    text[object->value.size] = '\0';
    *value = strtol(text, NULL, 10);
    object->decoded = value;
    live_values++;
    return 0;
}

static void release(void *decoded)
{
    live_values--;
    free(decoded);
}

static int matches(const vigil_object *object, void *user)
{
    return selects(user, *(const long *)object->decoded);
}

static void add_event(struct follower *follower, const vigil_object_event *event)
{
    char key[16];
    CHECK(follower->count < EVENTS_MAX && event->object.key.size < sizeof(key));
    memcpy(key, event->object.key.data, event->object.key.size);
    key[event->object.key.size] = '\0';
    follower->events[follower->count++] = (struct event){
        .type = event->type,
        .initial = event->initial,
        .key = (int)strtol(key + 2, NULL, 10),
        .value = *(const long *)event->object.decoded,
        .revision = event->object.revision,
    };
}

static int on_batch(vigil_object_watch *watch, vigil_object_batch *batch, void *user)
{
    struct follower *follower = user;
    (void)watch;
    CHECK(!batch->ended);
    for (size_t i = 0; i < batch->event_count; i++) {
        const vigil_object_event *event = &batch->events[i];
        if (event->type != VIGIL_OBJECT_BOOKMARK) {
            add_event(follower, event);
        } else if (event->initial) {
            CHECK(follower->state_at == 0 && follower->from == 0);
            follower->state_at = event->object.revision;
        }
    }
    return ++follower->batches % 16 == 0 ? VIGIL_WATCH_PAUSE : VIGIL_WATCH_CONTINUE;
}

static void follow(vigil_client *client, int number, int64_t from)
{
    struct follower *follower = &followers[number];
    vigil_object_options options;
    follower->number = number;
    follower->from = from;
    vigil_object_options_init(&options);
    options.key = vigil_text("h/");
    options.prefix = 1;
    options.revision = from;
    options.page_limit = 1 + number % 7;
    options.buffer_bytes = 500;
    options.progress_notify = 1;
    options.decode = decode;
    options.release = release;
    options.matches = number ? matches : NULL;
    CHECK(vigil_object_watch_new(client, &options, on_batch, follower, &follower->watch) ==
          VIGIL_OK);
}

/* -- The writer -- */

static void key_text(int key, char *text, size_t bytes)
{
    snprintf(text, bytes, "h/%02d", key);
}

static void note_change(int64_t revision, int key, long value)
{
    CHECK(history_count < sizeof(history) / sizeof(history[0]));
    history[history_count++] = (struct change){revision, key, value};
    current[key] = value;
}

static void put_value(vigil_client *writer, int key, long value)
{
    char name[16], text[32];
    key_text(key, name, sizeof(name));
    snprintf(text, sizeof(text), "%ld", value);
    note_change(put(writer, name, text), key, value);
}

static void delete_key(vigil_client *writer, int key)
{
    char name[16];
    if (current[key] == DELETED)
        return;
    key_text(key, name, sizeof(name));
    note_change(must(vigil_delete(writer, vigil_text(name))), key, DELETED);
}

/* Three keys in one revision. */
static void change_three(vigil_client *writer, int key, long value)
{
    vigil_txn *txn = vigil_txn_new(writer);
    char name[16], text[32];
    CHECK(txn);
    for (int i = 0; i < 3; i++) {
        key_text((key + i) % KEYS, name, sizeof(name));
        snprintf(text, sizeof(text), "%ld", value + i);
        vigil_txn_put(txn, vigil_text(name), vigil_text(text), 0);
    }
    int64_t revision = must(vigil_txn_call(txn));
    for (int i = 0; i < 3; i++)
        note_change(revision, (key + i) % KEYS, value + i);
    vigil_txn_free(txn);
}

static void change(vigil_client *writer, unsigned *seed, long number)
{
    int key = rand_r(seed) % KEYS;
    int kind = rand_r(seed) % 8;
    if (kind == 0)
        change_three(writer, key, 4 * number);
    else if (kind < 3)
        delete_key(writer, key);
    else
        put_value(writer, key, 4 * number);
}

static void resume_all(void)
{
    for (int i = 0; i < WATCHES; i++)
        if (followers[i].watch)
            vigil_object_watch_resume(followers[i].watch);
}

/* -- The checker -- */

static void expect(const struct follower *follower, size_t *at, struct event wanted)
{
    const struct event *got = &follower->events[*at];
    if (*at >= follower->count || got->type != wanted.type || got->key != wanted.key ||
        got->value != wanted.value || got->revision != wanted.revision ||
        got->initial != wanted.initial) {
        fprintf(stderr,
                "watch %d, event %zu of %zu: wanted type %d of key %d with %ld at %lld, "
                "got type %d of key %d with %ld at %lld\n",
                follower->number, *at, follower->count, wanted.type, wanted.key, wanted.value,
                (long long)wanted.revision, got->type, got->key, got->value,
                (long long)got->revision);
        abort();
    }
    ++*at;
}

static void expect_change(const struct follower *follower, size_t *at, long before,
                          const struct change *change)
{
    bool matched = selects(follower, before), now = selects(follower, change->value);
    struct event wanted = {
        .type = !now      ? VIGIL_OBJECT_DELETED
                : matched ? VIGIL_OBJECT_MODIFIED
                          : VIGIL_OBJECT_ADDED,
        .key = change->key,
        .value = now ? change->value : before,
        .revision = change->revision,
    };
    if (matched || now)
        expect(follower, at, wanted);
}

/* Replays the history up to the revision; the state after it is in values and revisions. */
static size_t replay(int64_t revision, long *values, int64_t *revisions)
{
    size_t i;
    for (int key = 0; key < KEYS; key++)
        values[key] = DELETED;
    for (i = 0; i < history_count && history[i].revision <= revision; i++) {
        values[history[i].key] = history[i].value;
        revisions[history[i].key] = history[i].revision;
    }
    return i;
}

static void check_follower(const struct follower *follower)
{
    long values[KEYS];
    int64_t revisions[KEYS];
    size_t at = 0;
    size_t next = replay(follower->from ? follower->from : follower->state_at, values, revisions);
    for (int key = 0; key < KEYS && !follower->from; key++)
        if (selects(follower, values[key]))
            expect(follower, &at,
                   (struct event){VIGIL_OBJECT_ADDED, true, key, values[key], revisions[key]});
    for (; next < history_count; next++) {
        expect_change(follower, &at, values[history[next].key], &history[next]);
        values[history[next].key] = history[next].value;
    }
    CHECK(at == follower->count);
}

/* Waits until every watch has delivered the history up to now. Otherwise one that is far behind
 * would get a response that is larger than what the proxy lets through before it cuts. Those that
 * are paused need to be resumed. */
static void catch_up(void)
{
    time_t end = time(NULL) + 60;
    int64_t newest = history[history_count - 1].revision;
    for (int i = 0; i < WATCHES; i++)
        while (followers[i].watch && vigil_object_watch_revision(followers[i].watch) < newest) {
            struct timespec pause = {0, 1000000};
            CHECK(time(NULL) < end);
            resume_all();
            nanosleep(&pause, NULL);
        }
}

static void object_watches_agree_with_the_history(void)
{
    vigil_client *writer = direct_client(), *client = new_client();
    vigil_client_stats stats;
    unsigned seed = 1;
    int started = 0;
    for (int key = 0; key < KEYS; key++)
        current[key] = DELETED;
    for (int key = 0; key < KEYS; key++)
        put_value(writer, key, key + 1);
    for (long number = KEYS; number < CHANGES; number++) {
        if (number * WATCHES / CHANGES >= started) {
            follow(client, started, started % 4 == 3 ? history[history_count - 30].revision : 0);
            started++;
        }
        change(writer, &seed, number);
        if (number % 8 == 0)
            resume_all();
        if (number % 40 == 0)
            catch_up();
    }
    CHECK(started == WATCHES);
    catch_up();
    vigil_client_get_stats(client, &stats, sizeof(stats));
    CHECK(stats.watch_resumes > WATCHES && stats.disconnects > 5); /* otherwise nothing was shown */
    for (int i = 0; i < WATCHES; i++)
        vigil_object_watch_free(followers[i].watch);
    CHECK(live_values == 0);
    for (int i = 0; i < WATCHES; i++)
        check_follower(&followers[i]);
    vigil_client_free(client);
    vigil_client_free(writer);
}

const struct suite_test object_fault_tests[] = {
    {"object_watches_agree_with_the_history", object_watches_agree_with_the_history},
    {NULL, NULL},
};

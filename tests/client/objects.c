/*
 * Watches of objects. The tests that begin with objects_Watch and the like are the cases of
 * Kubernetes' storage/testing/watcher_tests.go and storage/etcd3/watcher_test.go, under their
 * names. The objects are pods, whose values are "NAMESPACE/NAME@NODE#VERSION".
 */
#include "suite.h"

#include <poll.h>
#include <time.h>
#include <vigil/object.h>
#include <vigil/poll.h>

enum { TEXT_BYTES = 64, NOTES_MAX = 4096, WAIT_S = 60 };

struct pod {
    char namespace[TEXT_BYTES], name[TEXT_BYTES], node[TEXT_BYTES];
    int version;
};

/* Selects pods; NULL: any. */
struct selector {
    const char *namespace, *name, *node, *not_node;
};

/* A copy of an event. */
struct note {
    int type;
    bool initial;
    char key[TEXT_BYTES], value[TEXT_BYTES];
    int64_t revision;
    int64_t batch_revision;
};

/* What a watch has delivered. */
struct record {
    vigil_client *client;
    vigil_object_watch *watch;
    struct selector selector;
    struct latch events, ended, callbacks;
    struct note notes[NOTES_MAX];
    size_t taken;             /* of the notes, by expect */
    _Atomic long pause_after; /* answer a pause after this many events; 0: never */
    vigil_object_error error; /* if it has ended with one */
    bool refuse;              /* decode refuses everything */
    bool bookmarks;           /* note them, too */
};

static _Atomic long live_pods;

static int decode_pod(vigil_object *object, vigil_error *error, void *user)
{
    const struct record *record = user;
    char text[3 * TEXT_BYTES];
    struct pod *pod = calloc(1, sizeof(*pod));
    CHECK(pod && object->value.size < sizeof(text) && object->revision > 0);
    memcpy(text, object->value.data, object->value.size);
    text[object->value.size] = '\0';
    if (record->refuse || sscanf(text, "%63[^/]/%63[^@]@%63[^#]#%d", pod->namespace, pod->name,
                                 pod->node, &pod->version) != 4) {
        snprintf(error->text, sizeof(error->text), "bits flipped");
        free(pod);
        return 1;
    }
    live_pods++;
    object->decoded = pod;
    return 0;
}

static void release_pod(void *decoded)
{
    live_pods--;
    free(decoded);
}

static bool is(const char *wanted, const char *text)
{
    return !wanted || strcmp(wanted, text) == 0;
}

static int pod_matches(const vigil_object *object, void *user)
{
    const struct selector *selector = &((struct record *)user)->selector;
    const struct pod *pod = object->decoded;
    return is(selector->namespace, pod->namespace) && is(selector->name, pod->name) &&
           is(selector->node, pod->node) &&
           !(selector->not_node && strcmp(selector->not_node, pod->node) == 0);
}

static void copy_text(char *to, vigil_bytes from)
{
    CHECK(from.size < TEXT_BYTES);
    if (from.size)
        memcpy(to, from.data, from.size);
    to[from.size] = '\0';
}

static void note_event(struct record *record, const vigil_object_event *event, int64_t revision)
{
    long count = latch_count(&record->events);
    CHECK(count < NOTES_MAX);
    struct note *note = &record->notes[count];
    *note = (struct note){.type = event->type,
                          .initial = event->initial,
                          .revision = event->object.revision,
                          .batch_revision = revision};
    copy_text(note->key, event->object.key);
    copy_text(note->value, event->object.value);
    CHECK(event->type <= VIGIL_OBJECT_DELETED || !event->object.decoded);
    latch_add(&record->events, 1);
}

static int on_batch(vigil_object_watch *watch, vigil_object_batch *batch, void *user)
{
    struct record *record = user;
    CHECK(vigil_object_watch_user(watch) == user);
    CHECK(latch_count(&record->ended) == 0);
    CHECK(batch->event_count > 0 || batch->ended);
    CHECK(vigil_object_watch_revision(watch) == batch->revision);
    for (size_t i = 0; i < batch->event_count; i++) {
        const vigil_object_event *event = &batch->events[i];
        CHECK((event->type == VIGIL_OBJECT_ERROR) == (event->error != NULL));
        if (event->error) {
            CHECK(batch->ended && i + 1 == batch->event_count);
            record->error = *event->error;
        } else if (event->type != VIGIL_OBJECT_BOOKMARK || record->bookmarks) {
            note_event(record, event, batch->revision);
        }
    }
    if (batch->ended)
        latch_add(&record->ended, 1);
    latch_add(&record->callbacks, 1);
    long pause_after = record->pause_after;
    return pause_after && latch_count(&record->events) >= pause_after ? VIGIL_WATCH_PAUSE
                                                                      : VIGIL_WATCH_CONTINUE;
}

/* latch_wait, which also drives a client without a thread. */
static void wait_for(vigil_client *client, struct latch *latch, long count)
{
    time_t end = time(NULL) + WAIT_S;
    if (vigil_client_fd(client) < 0) {
        latch_wait(latch, count);
        return;
    }
    while (latch_count(latch) < count) {
        struct pollfd fd;
        int timeout_ms = 1000;
        CHECK(time(NULL) < end);
        vigil_poll_prepare(client, &fd, &timeout_ms);
        poll(&fd, 1, timeout_ms);
        vigil_client_process(client);
    }
}

static struct record *record_new(vigil_client *client)
{
    struct record *record = calloc(1, sizeof(*record));
    CHECK(record);
    record->client = client;
    record->events = record->ended = record->callbacks = (struct latch)LATCH_INIT;
    return record;
}

static void options_for(vigil_object_options *options, const char *key, bool prefix,
                        int64_t revision)
{
    vigil_object_options_init(options);
    options->key = vigil_text(key);
    options->prefix = prefix;
    options->revision = revision;
    options->decode = decode_pod;
    options->release = release_pod;
}

static void start(struct record *record, const vigil_object_options *options)
{
    CHECK(vigil_object_watch_new(record->client, options, on_batch, record, &record->watch) ==
          VIGIL_OK);
}

static struct record *watch_pods(vigil_client *client, const char *key, bool prefix,
                                 int64_t revision, const struct selector *selector)
{
    struct record *record = record_new(client);
    vigil_object_options options;
    options_for(&options, key, prefix, revision);
    if (selector) {
        record->selector = *selector;
        options.matches = pod_matches;
    }
    start(record, &options);
    return record;
}

static void record_free(struct record *record)
{
    vigil_object_watch_free(record->watch);
    free(record);
}

static const struct note *next_note(struct record *record)
{
    wait_for(record->client, &record->events, (long)record->taken + 1);
    return &record->notes[record->taken++];
}

static void expect(struct record *record, int type, const char *key, const char *value,
                   int64_t revision)
{
    const struct note *note = next_note(record);
    if (note->type != type || strcmp(note->key, key) != 0 || strcmp(note->value, value) != 0 ||
        note->revision != revision) {
        fprintf(stderr, "wanted %d %s = %s (%lld), got %d %s = %s (%lld)\n", type, key, value,
                (long long)revision, note->type, note->key, note->value, (long long)note->revision);
        abort();
    }
}

static void expect_end(struct record *record, int status, const char *reason, const char *text)
{
    wait_for(record->client, &record->ended, 1);
    if (record->error.status != status || strcmp(record->error.error.text, text) != 0)
        fprintf(stderr, "%d: %s\n", record->error.status, record->error.error.text);
    CHECK(record->error.status == status);
    CHECK(strcmp(record->error.reason, reason) == 0);
    CHECK(strcmp(record->error.error.text, text) == 0);
    CHECK((size_t)latch_count(&record->events) == record->taken);
}

static int64_t current_revision(vigil_client *client)
{
    return must(vigil_get(client, vigil_text("nothing")));
}

static void finish(vigil_client *client)
{
    vigil_client_free(client);
    CHECK(live_pods == 0);
}

/* -- Steps: a table of puts and the event that each one yields -- */

enum {
    NONE = -1,
    ADDED = VIGIL_OBJECT_ADDED,
    MODIFIED = VIGIL_OBJECT_MODIFIED,
    DELETED = VIGIL_OBJECT_DELETED
};

struct step {
    const char *namespace, *name, *node;
    int type;
};

/* A node that is not given is "-". */
static void value_of(const struct step *step, int version, char *value)
{
    snprintf(value, TEXT_BYTES, "%s/%s@%s#%d", step->namespace, step->name,
             step->node ? step->node : "-", version);
}

static void key_of(const struct step *step, char *key)
{
    snprintf(key, TEXT_BYTES, "/pods/%s/%s", step->namespace, step->name);
}

/* The previous value of a pod, by its key; at most one table at a time. */
static const char *previous_value(const struct step *steps, int at)
{
    static char value[TEXT_BYTES];
    for (int i = at - 1; i >= 0; i--)
        if (strcmp(steps[i].name, steps[at].name) == 0 &&
            strcmp(steps[i].namespace, steps[at].namespace) == 0) {
            value_of(&steps[i], i, value);
            return value;
        }
    return "";
}

/* What yields nothing is followed by another put or by a last one, whose event shows that. */
static void run_steps(vigil_client *client, struct record *record, const struct step *steps)
{
    char key[TEXT_BYTES], value[TEXT_BYTES];
    for (int i = 0; steps[i].name; i++) {
        key_of(&steps[i], key);
        value_of(&steps[i], i, value);
        int64_t revision = put(client, key, value);
        if (steps[i].type != NONE)
            expect(record, steps[i].type, key,
                   steps[i].type == DELETED ? previous_value(steps, i) : value, revision);
    }
    CHECK((size_t)latch_count(&record->events) == record->taken);
}

struct scenario {
    const char *key;
    bool prefix;
    struct selector selector;
    struct step steps[6];
};

static void run_scenario(vigil_client *client, const struct scenario *scenario)
{
    int64_t revision = current_revision(client);
    struct record *record =
        watch_pods(client, scenario->key, scenario->prefix, revision, &scenario->selector);
    run_steps(client, record, scenario->steps);
    /* A second one from the same revision sees the same, now in the past. */
    struct record *late =
        watch_pods(client, scenario->key, scenario->prefix, revision, &scenario->selector);
    for (size_t i = 0; i < record->taken; i++) {
        const struct note *note = &record->notes[i];
        expect(late, note->type, note->key, note->value, note->revision);
    }
    record_free(late);
    record_free(record);
}

static void run_scenarios(const struct scenario *scenarios, size_t count)
{
    vigil_client *client = new_client();
    for (size_t i = 0; i < count; i++)
        run_scenario(client, &scenarios[i]);
    finish(client);
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void watch(void)
{
    static const struct scenario scenarios[] = {
        {"/pods/1/foo", false, {0}, {{"1", "foo", NULL, ADDED}}},
        {"/pods/2/foo",
         false,
         {.node = "bar"},
         {{"2", "foo", NULL, NONE}, {"2", "foo", "bar", ADDED}}},
        {"/pods/3/foo", false, {0}, {{"3", "foo", NULL, ADDED}, {"3", "foo", "bar", MODIFIED}}},
        {"/pods/4/foo",
         false,
         {.not_node = "bar"},
         {{"4", "foo", NULL, ADDED}, {"4", "foo", "bar", DELETED}}},
        {"/pods/5/", true, {0}, {{"5", "foo", NULL, ADDED}}},
        {"/pods/6/", true, {.node = "bar"}, {{"6", "foo", NULL, NONE}, {"6", "foo", "bar", ADDED}}},
        {"/pods/7/", true, {0}, {{"7", "foo", NULL, ADDED}, {"7", "foo", "bar", MODIFIED}}},
        {"/pods/8/",
         true,
         {.not_node = "bar"},
         {{"8", "foo", NULL, ADDED}, {"8", "foo", "bar", DELETED}}},
    };
    run_scenarios(scenarios, COUNT(scenarios));
}

static void cluster_scoped_watch(void)
{
    static const struct scenario scenarios[] = {
        {"/pods/c1/",
         true,
         {0},
         {{"c1", "foo1", NULL, ADDED}, {"c1", "foo1", NULL, MODIFIED}, {"c1", "foo2", "b", ADDED}}},
        {"/pods/c2/",
         true,
         {.node = "bar1"},
         {{"c2", "foo1", NULL, NONE}, {"c2", "foo1", "bar1", ADDED}}},
        {"/pods/c3/",
         true,
         {.not_node = "bar1"},
         {{"c3", "foo1", NULL, ADDED},
          {"c3", "foo2", NULL, ADDED},
          {"c3", "foo1", NULL, MODIFIED},
          {"c3", "foo1", "bar1", DELETED}}},
        {"/pods/c4/foo1",
         false,
         {.name = "foo1"},
         {{"c4", "foo1", NULL, ADDED}, {"c4", "foo2", NULL, NONE}, {"c4", "foo1", NULL, MODIFIED}}},
        {"/pods/c5/foo1",
         false,
         {.name = "foo1", .node = "bar1"},
         {{"c5", "foo1", NULL, NONE},
          {"c5", "foo2", NULL, NONE},
          {"c5", "foo1", NULL, NONE},
          {"c5", "foo1", "bar1", ADDED}}},
        {"/pods/c6/foo1",
         false,
         {.name = "foo1", .not_node = "bar1"},
         {{"c6", "foo1", NULL, ADDED},
          {"c6", "foo2", NULL, NONE},
          {"c6", "foo1", NULL, MODIFIED},
          {"c6", "foo1", "bar1", DELETED}}},
    };
    run_scenarios(scenarios, COUNT(scenarios));
}

static void namespace_scoped_watch(void)
{
    static const struct scenario scenarios[] = {
        {"/pods/",
         true,
         {0},
         {{"n1", "foo1", NULL, ADDED}, {"n2", "foo2", NULL, ADDED}, {"n1", "foo1", "b", MODIFIED}}},
        {"/pods/",
         true,
         {.namespace = "n3"},
         {{"n3", "foo1", NULL, ADDED}, {"n4", "foo1", NULL, NONE}, {"n3", "foo1", "b", MODIFIED}}},
        {"/pods/",
         true,
         {.node = "bar3"},
         {{"n5", "foo1", NULL, NONE},
          {"n6", "foo2", NULL, NONE},
          {"n5", "foo1", "bar3", ADDED},
          {"n6", "foo2", "bar3", ADDED}}},
        {"/pods/n7/",
         true,
         {0},
         {{"n7", "foo1", NULL, ADDED},
          {"n8", "foo1", NULL, NONE},
          {"n7", "foo2", NULL, ADDED},
          {"n8", "foo1", NULL, NONE},
          {"n7", "foo1", NULL, MODIFIED}}},
        {"/pods/n9/",
         true,
         {.namespace = "n10"},
         {{"n9", "foo1", NULL, NONE}, {"n10", "foo1", NULL, NONE}}},
        {"/pods/n11/",
         true,
         {.node = "bar2"},
         {{"n11", "foo1", NULL, NONE},
          {"n11", "foo1", "bar1", NONE},
          {"n12", "foo1", "bar2", NONE},
          {"n11", "foo1", "bar2", ADDED}}},
        {"/pods/n13/",
         true,
         {.not_node = "bar1"},
         {{"n12", "foo1", NULL, NONE},
          {"n13", "foo1", NULL, ADDED},
          {"n13", "foo1", "bar1", DELETED},
          {"n13", "foo1", "bar2", ADDED}}},
        {"/pods/",
         true,
         {.name = "foo15", .not_node = "bar1"},
         {{"n15", "foo15", NULL, ADDED},
          {"n15", "foo2", NULL, NONE},
          {"n15", "foo15", NULL, MODIFIED},
          {"n15", "foo15", "bar1", DELETED},
          {"n15", "foo15", "bar2", ADDED}}},
        {"/pods/n18/foo1",
         false,
         {.namespace = "n18", .name = "foo1", .node = "bar1"},
         {{"n18", "foo1", NULL, NONE},
          {"n18", "foo2", NULL, NONE},
          {"n19", "foo1", NULL, NONE},
          {"n18", "foo1", "bar1", ADDED}}},
    };
    run_scenarios(scenarios, COUNT(scenarios));
}

/* -- Where a watch begins -- */

static void delete_trigger_watch(void)
{
    vigil_client *client = new_client();
    int64_t revision = put(client, "/pods/ns/foo", "ns/foo@-#1");
    struct record *record = watch_pods(client, "/pods/ns/foo", false, revision, NULL);
    revision = must(vigil_delete(client, vigil_text("/pods/ns/foo")));
    expect(record, DELETED, "/pods/ns/foo", "ns/foo@-#1", revision);
    record_free(record);
    finish(client);
}

static void watch_from_zero(void)
{
    vigil_client *client = new_client();
    for (int round = 0; round < 3; round++) {
        char value[TEXT_BYTES];
        snprintf(value, sizeof(value), "ns/foo@-#%d", round);
        int64_t revision = put(client, "/pods/ns/foo", value);
        if (round == 2) /* the previous values are gone */
            must(vigil_compact(client, revision, 1));
        struct record *record = watch_pods(client, "/pods/ns/foo", false, 0, NULL);
        expect(record, ADDED, "/pods/ns/foo", value, revision);
        CHECK(record->notes[0].initial);
        record_free(record);
    }
    finish(client);
}

static void watch_from_non_zero(void)
{
    vigil_client *client = new_client();
    int64_t revision = put(client, "/pods/ns/foo", "ns/foo@-#1");
    struct record *record = watch_pods(client, "/pods/ns/foo", false, revision, NULL);
    revision = put(client, "/pods/ns/foo", "ns/foo@-#2");
    expect(record, MODIFIED, "/pods/ns/foo", "ns/foo@-#2", revision);
    CHECK(!record->notes[0].initial);
    record_free(record);
    finish(client);
}

static void delayed_watch_delivery(void)
{
    enum { PODS = 21 };
    vigil_client *client = new_client();
    char key[TEXT_BYTES], value[TEXT_BYTES];
    int64_t revisions[PODS];
    int64_t revision = put(client, "/pods/ns/foo", "ns/foo@-#1");
    struct record *record = watch_pods(client, "/pods/ns/", true, revision, NULL);
    for (int i = 0; i < PODS; i++) {
        snprintf(key, sizeof(key), "/pods/ns/foo-%d", i);
        snprintf(value, sizeof(value), "ns/foo-%d@-#1", i);
        revisions[i] = put(client, key, value);
    }
    for (int i = 0; i < PODS; i++) {
        snprintf(key, sizeof(key), "/pods/ns/foo-%d", i);
        snprintf(value, sizeof(value), "ns/foo-%d@-#1", i);
        expect(record, ADDED, key, value, revisions[i]);
    }
    record_free(record);
    finish(client);
}

/* The state in pages, while keys are added: they are not in the state, but follow it. */
static void watch_chan_sync(void)
{
    static const struct {
        const char *key;
        int64_t limit;
        size_t objects;
        uint64_t pages;
    } cases[] = {{"/pods/none/", 1, 0, 1}, {"/pods/", 3, 2, 1}, {"/pods/", 1, 2, 2}};
    vigil_client *client = new_client(), *writer = new_client();
    put(writer, "/pods/first/bar", "first/bar@-#1");
    int64_t state = put(writer, "/pods/second/bar", "second/bar@-#1");
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct record *record = record_new(client);
        vigil_object_options options;
        vigil_object_watch_stats stats;
        options_for(&options, cases[i].key, true, 0);
        options.page_limit = cases[i].limit;
        record->bookmarks = true;
        record->pause_after = cases[i].objects ? 1 : 0; /* after the first page */
        start(record, &options);
        wait_for(client, &record->events, 1);
        int64_t later = put(writer, "/pods/third/bar", "third/bar@-#1");
        record->pause_after = 0;
        vigil_object_watch_resume(record->watch);
        if (cases[i].objects) {
            expect(record, ADDED, "/pods/first/bar", "first/bar@-#1", state - 1);
            expect(record, ADDED, "/pods/second/bar", "second/bar@-#1", state);
        }
        CHECK(next_note(record)->type == VIGIL_OBJECT_BOOKMARK);
        CHECK(record->notes[cases[i].objects].initial);
        CHECK(record->notes[cases[i].objects].revision == later - 1);
        CHECK(record->notes[cases[i].objects].batch_revision == later - 1);
        if (cases[i].objects)
            expect(record, ADDED, "/pods/third/bar", "third/bar@-#1", later);
        vigil_object_watch_get_stats(record->watch, &stats, sizeof(stats));
        CHECK(stats.pages == cases[i].pages);
        CHECK(stats.events == cases[i].objects + (cases[i].objects > 0));
        record_free(record);
        must(vigil_delete(writer, vigil_text("/pods/third/bar")));
    }
    vigil_client_free(writer);
    finish(client);
}

/* A page that exceeds what the client receives is read again in smaller ones. */
struct large {
    struct latch done;
    long objects;
};

static int on_large(vigil_object_watch *watch, vigil_object_batch *batch, void *user)
{
    struct large *large = user;
    (void)watch;
    for (size_t i = 0; i < batch->event_count; i++) {
        const vigil_object_event *event = &batch->events[i];
        if (event->type == VIGIL_OBJECT_BOOKMARK) {
            CHECK(event->initial);
            latch_add(&large->done, 1);
        } else {
            char key[TEXT_BYTES];
            snprintf(key, sizeof(key), "large/%03ld", large->objects++);
            CHECK(event->type == VIGIL_OBJECT_ADDED && event->initial);
            CHECK(bytes_equal(event->object.key, key) && event->object.value.size == 1000);
            CHECK(!event->object.decoded);
        }
    }
    return VIGIL_WATCH_CONTINUE;
}

static void large_pages_are_divided(void)
{
    enum { OBJECTS = 100, BYTES = 1000, LIMIT = 20000 };
    static const char value[BYTES];
    struct large large = {LATCH_INIT, 0};
    vigil_options client_options;
    vigil_object_options options;
    vigil_object_watch_stats stats;
    vigil_object_watch *object_watch;
    vigil_client *client, *writer = new_client();
    default_options(&client_options);
    client_options.receive_bytes_max = LIMIT;
    CHECK(vigil_client_new(&client_options, &client, NULL) == VIGIL_OK);
    for (int i = 0; i < OBJECTS; i++) {
        char key[TEXT_BYTES];
        snprintf(key, sizeof(key), "large/%03d", i);
        must(vigil_put(writer, vigil_text(key), vigil_bytes_of(value, BYTES), 0));
    }
    vigil_object_options_init(&options);
    options.key = vigil_text("large/");
    options.prefix = 1;
    CHECK(vigil_object_watch_new(client, &options, on_large, &large, &object_watch) == VIGIL_OK);
    wait_for(client, &large.done, 1);
    CHECK(large.objects == OBJECTS);
    vigil_object_watch_get_stats(object_watch, &stats, sizeof(stats));
    CHECK(stats.pages > OBJECTS / (LIMIT / BYTES) && stats.batch_events_max < LIMIT / BYTES);
    vigil_object_watch_free(object_watch);
    vigil_client_free(writer);
    vigil_client_free(client);
}

/* -- Errors -- */

static void watch_error(void)
{
    vigil_client *client = new_client();
    int64_t revision = current_revision(client);
    put(client, "/pods/ns/foo", "ns/foo@-#1");
    int64_t revisions[] = {revision, 0}; /* in a change, and in the state */
    for (size_t i = 0; i < COUNT(revisions); i++) {
        struct record *record = record_new(client);
        vigil_object_options options;
        options_for(&options, "/pods/ns/foo", false, revisions[i]);
        record->refuse = true;
        start(record, &options);
        expect_end(record, 500, "InternalError", "Internal error occurred: bits flipped");
        CHECK(record->error.error.code == VIGIL_ERROR_DECODE);
        CHECK(vigil_object_watch_revision(record->watch) == revisions[i]);
        record_free(record);
    }
    finish(client);
}

/* Events before the error are delivered, and none after it. */
static void watch_error_event_is_blocking_further_event(void)
{
    vigil_client *client = new_client();
    int64_t revision = put(client, "/pods/ns/foo", "ns/foo@-#1");
    put(client, "/pods/ns/foo", "ns/foo@-#2");
    put(client, "/pods/ns/foo", "garbage");
    put(client, "/pods/ns/foo", "ns/foo@-#3");
    struct record *record = watch_pods(client, "/pods/ns/", true, revision, NULL);
    expect(record, MODIFIED, "/pods/ns/foo", "ns/foo@-#2", revision + 1);
    expect_end(record, 500, "InternalError", "Internal error occurred: bits flipped");
    CHECK(vigil_object_watch_revision(record->watch) == revision + 1);
    put(client, "/pods/ns/foo", "ns/foo@-#4");
    struct record *other = watch_pods(client, "/pods/ns/", true, revision + 4 - 1, NULL);
    expect(other, MODIFIED, "/pods/ns/foo", "ns/foo@-#4", revision + 4);
    CHECK(latch_count(&record->events) == 1);
    record_free(other);
    record_free(record);
    finish(client);
}

/* A value that cannot be decoded was deleted; and, with a selector, one that was replaced. */
static void watch_with_unsafe_delete(void)
{
    vigil_client *client = new_client();
    const struct selector any = {0};
    int64_t revision = put(client, "/pods/ns/foo", "garbage");
    int64_t other = put(client, "/pods/ns/bar", "garbage");
    must(vigil_delete(client, vigil_text("/pods/ns/foo")));
    put(client, "/pods/ns/bar", "ns/bar@-#1");
    struct record *record = watch_pods(client, "/pods/ns/foo", false, revision, NULL);
    expect_end(record, 500, "StorageReadError",
               "saw a DELETED event, but object data is corrupt - bits flipped");
    record_free(record);
    record = watch_pods(client, "/pods/ns/bar", false, other, &any);
    expect_end(record, 500, "InternalError", "Internal error occurred: bits flipped");
    record_free(record);
    record = watch_pods(client, "/pods/ns/bar", false, other, NULL);
    expect(record, MODIFIED, "/pods/ns/bar", "ns/bar@-#1", other + 2);
    record_free(record);
    finish(client);
}

static void compacted_revision_is_expired(void)
{
    vigil_client *client = new_client();
    int64_t first = put(client, "/pods/ns/foo", "ns/foo@-#1");
    put(client, "/pods/ns/foo", "ns/foo@-#2");
    int64_t last = put(client, "/pods/ns/foo", "ns/foo@-#3");
    must(vigil_compact(client, last, 1));
    struct record *record = watch_pods(client, "/pods/ns/foo", false, first, NULL);
    expect_end(record, 410, "Expired", "The resourceVersion for the provided watch is too old.");
    CHECK(record->error.compact_revision == last);
    CHECK(record->error.error.code == VIGIL_ERROR_COMPACTED);
    record_free(record);
    finish(client);
}

/* The state is compacted between two pages. */
static void state_that_is_compacted_is_expired(void)
{
    vigil_client *client = new_client();
    struct record *record = record_new(client);
    vigil_object_options options;
    put(client, "/pods/ns/bar", "ns/bar@-#1");
    put(client, "/pods/ns/foo", "ns/foo@-#1");
    options_for(&options, "/pods/", true, 0);
    options.page_limit = 1;
    record->pause_after = 1;
    start(record, &options);
    (void)next_note(record);
    CHECK(record->notes[0].batch_revision == 0);
    must(vigil_compact(client, put(client, "/pods/ns/bar", "ns/bar@-#2"), 1));
    vigil_object_watch_resume(record->watch);
    expect_end(record, 410, "Expired", "The resourceVersion for the provided watch is too old.");
    CHECK(vigil_object_watch_revision(record->watch) == 0);
    record_free(record);
    finish(client);
}

/* The change can still be watched; etcd has no longer the value before it, Vigil has. */
static void previous_value_is_there_or_its_absence_is_an_error(void)
{
    vigil_client *client = new_client();
    char text[2 * TEXT_BYTES];
    put(client, "/pods/ns/foo", "ns/foo@-#1");
    int64_t last = put(client, "/pods/ns/foo", "ns/foo@-#2");
    must(vigil_compact(client, last, 1));
    struct record *record = watch_pods(client, "/pods/ns/foo", false, last - 1, NULL);
    wait_for(client, &record->callbacks, 1);
    snprintf(text, sizeof(text),
             "Internal error occurred: etcd event received with PrevKv=nil (key=\"/pods/ns/foo\", "
             "modRevision=%lld, type=PUT)",
             (long long)last);
    if (latch_count(&record->events) == 0)
        expect_end(record, 500, "InternalError", text);
    else
        expect(record, MODIFIED, "/pods/ns/foo", "ns/foo@-#2", last);
    record_free(record);
    finish(client);
}

static void watch_error_incorrect_configuration(void)
{
    vigil_client *client = new_client();
    vigil_object_options options, good;
    vigil_object_watch *unset = NULL;
    options_for(&good, "k", false, 0);
    CHECK(vigil_object_watch_new(client, &good, NULL, NULL, &unset) == VIGIL_ERROR_ARGUMENT);
    options = good;
    options.revision = -1;
    CHECK(vigil_object_watch_new(client, &options, on_batch, NULL, &unset) == VIGIL_ERROR_ARGUMENT);
    options.revision = INT64_MAX;
    CHECK(vigil_object_watch_new(client, &options, on_batch, NULL, &unset) == VIGIL_ERROR_ARGUMENT);
    options = good;
    options.page_limit = 0;
    CHECK(vigil_object_watch_new(client, &options, on_batch, NULL, &unset) == VIGIL_ERROR_ARGUMENT);
    options = good;
    options.size = sizeof(options) + 1;
    CHECK(vigil_object_watch_new(client, &options, on_batch, NULL, &unset) == VIGIL_ERROR_ARGUMENT);
    CHECK(!unset);
    finish(client);
}

/* -- The end -- */

/* Silent in every state: before the start, while listing, paused, watching, and after an error. */
static void watch_context_cancel(void)
{
    vigil_client *client = new_client();
    put(client, "/pods/ns/foo", "ns/foo@-#1");
    put(client, "/pods/ns/garbage", "garbage");
    for (int i = 0; i < 100; i++) {
        struct record *record = record_new(client);
        vigil_object_options options;
        options_for(&options, i % 2 ? "/pods/ns/foo" : "/pods/", true, 0);
        options.page_limit = 1;
        record->pause_after = i % 3 ? 1 : 0;
        start(record, &options);
        if (i % 5 > 1)
            wait_for(client, &record->events, 1);
        if (i % 5 == 4)
            vigil_object_watch_resume(record->watch);
        record_free(record);
    }
    finish(client);
}

static int free_inside(vigil_object_watch *object_watch, vigil_object_batch *batch, void *user)
{
    CHECK(batch->event_count > 0 && batch->events[0].object.decoded);
    vigil_object_watch_free(object_watch);
    struct record *record = user;
    latch_add(&record->ended, 1);
    return VIGIL_WATCH_CONTINUE;
}

/* Also after a pause, and while an error is being delivered. */
static void watch_err_result_not_block_after_cancel(void)
{
    vigil_client *client = new_client();
    int64_t revision = put(client, "/pods/ns/foo", "ns/foo@-#1");
    int64_t revisions[] = {0, revision - 1};
    for (size_t i = 0; i < COUNT(revisions); i++) {
        struct record *record = record_new(client);
        vigil_object_options options;
        vigil_object_watch *object_watch;
        options_for(&options, "/pods/", true, revisions[i]);
        CHECK(vigil_object_watch_new(client, &options, free_inside, record, &object_watch) ==
              VIGIL_OK);
        wait_for(client, &record->ended, 1);
        record_free(record);
    }
    finish(client);
}

/* The client ends: no error, but the program learns that nothing follows. */
static void shutdown_ends_object_watches_without_an_error(void)
{
    enum { WATCHES = 4 };
    vigil_client *client = new_client();
    struct record *records[WATCHES];
    int64_t revision = put(client, "/pods/ns/foo", "ns/foo@-#1");
    put(client, "/pods/ns/goo", "ns/goo@-#1");
    for (int i = 0; i < WATCHES; i++) {
        vigil_object_options options;
        records[i] = record_new(client);
        options_for(&options, "/pods/", true, i == 0 ? revision : 0);
        options.page_limit = 1;
        records[i]->pause_after = i == 1 ? 1 : 0; /* between two pages */
        start(records[i], &options);
        if (i < 3)
            (void)next_note(records[i]);
    }
    vigil_client_shutdown(client);
    for (int i = 0; i < WATCHES; i++) {
        wait_for(client, &records[i]->ended, 1);
        CHECK(records[i]->error.status == 0);
    }
    struct record *late = watch_pods(client, "/pods/", true, 0, NULL);
    wait_for(client, &late->ended, 1);
    record_free(late);
    for (int i = 0; i < WATCHES; i++)
        record_free(records[i]);
    finish(client);
}

/* A client that is freed makes no callback; its watches must still be freed. */
static void client_is_freed_before_its_object_watches(void)
{
    enum { WATCHES = 3 };
    vigil_client *client = new_client();
    struct record *records[WATCHES];
    put(client, "/pods/ns/foo", "ns/foo@-#1");
    put(client, "/pods/ns/goo", "ns/goo@-#1");
    for (int i = 0; i < WATCHES; i++) {
        vigil_object_options options;
        records[i] = record_new(client);
        options_for(&options, "/pods/", true, 0);
        options.page_limit = 1;
        records[i]->pause_after = i == 0;
        start(records[i], &options);
        if (i < 2)
            (void)next_note(records[i]);
    }
    vigil_client_free(client);
    for (int i = 0; i < WATCHES; i++) {
        CHECK(latch_count(&records[i]->ended) == 0);
        vigil_object_watch_resume(records[i]->watch);
        record_free(records[i]);
    }
    CHECK(live_pods == 0);
}

/* -- Events -- */

static void watch_delete_event_object_have_latest_rv(void)
{
    vigil_client *client = new_client();
    int64_t stored = put(client, "/pods/ns/foo", "ns/foo@-#1");
    struct record *record = watch_pods(client, "/pods/ns/foo", false, stored, NULL);
    int64_t deleted = must(vigil_delete(client, vigil_text("/pods/ns/foo")));
    const struct note *note = next_note(record);
    CHECK(note->type == DELETED && note->revision == deleted && deleted > stored);
    record_free(record);
    finish(client);
}

/* The end of the state is marked, also when there is none. */
static void watch_initialization_signal(void)
{
    vigil_client *client = new_client();
    for (int i = 0; i < 2; i++) {
        int64_t revision = i ? put(client, "/pods/ns/foo", "ns/foo@-#1") : current_revision(client);
        struct record *record = record_new(client);
        vigil_object_options options;
        options_for(&options, "/pods/", true, 0);
        record->bookmarks = true;
        start(record, &options);
        if (i)
            expect(record, ADDED, "/pods/ns/foo", "ns/foo@-#1", revision);
        expect(record, VIGIL_OBJECT_BOOKMARK, "", "", revision);
        CHECK(record->notes[i].initial && record->notes[i].batch_revision == revision);
        record_free(record);
    }
    finish(client);
}

/* The driver makes the server send progress often (VIGIL_PROGRESS). A change elsewhere moves the
 * bookmark on. */
static void progress_notify(void)
{
    vigil_client *client = new_client();
    struct record *record = record_new(client);
    vigil_object_options options;
    vigil_object_watch_stats stats;
    int64_t revision = put(client, "/pods/ns/foo", "ns/foo@-#1");
    options_for(&options, "/pods/", true, revision);
    options.progress_notify = 1;
    record->bookmarks = true;
    start(record, &options);
    int64_t elsewhere = put(client, "/nodes/a", "x");
    const struct note *note;
    do {
        note = next_note(record);
        CHECK(note->type == VIGIL_OBJECT_BOOKMARK && !note->initial);
        CHECK(note->revision >= revision && note->key[0] == '\0');
        CHECK(note->revision == note->batch_revision);
    } while (note->revision < elsewhere);
    CHECK(vigil_object_watch_revision(record->watch) == elsewhere);
    vigil_object_watch_get_stats(record->watch, &stats, sizeof(stats));
    CHECK(stats.bookmarks > 0 && stats.events == 0);
    record_free(record);
    finish(client);
}

/* A watch that is paused does not delay another; its queue is bounded, and it loses nothing. */
static void watcher_timeout(void)
{
    enum { PUTS = 300, BUFFER = 2000 };
    vigil_client *client = new_client();
    struct record *paused = record_new(client);
    vigil_object_options options;
    vigil_object_watch_stats stats;
    char value[TEXT_BYTES];
    int64_t revision = put(client, "/pods/ns/foo", "ns/foo@-#0");
    struct record *other = watch_pods(client, "/pods/", true, revision, NULL);
    options_for(&options, "/pods/", true, revision);
    options.buffer_bytes = BUFFER;
    paused->pause_after = 1;
    start(paused, &options);
    for (int i = 1; i <= PUTS; i++) {
        snprintf(value, sizeof(value), "ns/foo@-#%d", i);
        put(client, "/pods/ns/foo", value);
        expect(other, MODIFIED, "/pods/ns/foo", value, revision + i);
    }
    wait_for(client, &paused->events, 1);
    paused->pause_after = 0;
    vigil_object_watch_resume(paused->watch);
    for (int i = 1; i <= PUTS; i++) {
        snprintf(value, sizeof(value), "ns/foo@-#%d", i);
        expect(paused, MODIFIED, "/pods/ns/foo", value, revision + i);
    }
    vigil_object_watch_get_stats(paused->watch, &stats, sizeof(stats));
    CHECK(stats.events == PUTS && stats.pauses >= 1 && stats.queued_bytes == 0);
    CHECK(stats.queued_bytes_max > 0 && stats.queued_bytes_max <= BUFFER);
    record_free(other);
    record_free(paused);
    finish(client);
}

/* Objects that the program keeps are not released. */
static int keep_pods(vigil_object_watch *object_watch, vigil_object_batch *batch, void *user)
{
    struct pod **kept = vigil_object_watch_user(object_watch);
    CHECK(kept == user);
    for (size_t i = 0; i < batch->event_count; i++)
        if (batch->events[i].object.decoded) {
            *kept = batch->events[i].object.decoded;
            batch->events[i].object.decoded = NULL;
        }
    return VIGIL_WATCH_CONTINUE;
}

static int decode_for_keeping(vigil_object *object, vigil_error *error, void *user)
{
    static const struct record any;
    (void)user;
    return decode_pod(object, error, (void *)&any);
}

static void objects_can_be_kept(void)
{
    vigil_client *client = new_client();
    vigil_object_options options;
    vigil_object_watch *object_watch;
    vigil_object_watch_stats stats = {0};
    struct pod *kept = NULL;
    put(client, "/pods/ns/foo", "ns/foo@-#7");
    options_for(&options, "/pods/ns/foo", false, 0);
    options.decode = decode_for_keeping;
    CHECK(vigil_object_watch_new(client, &options, keep_pods, &kept, &object_watch) == VIGIL_OK);
    while (stats.bookmarks == 0) {
        current_revision(client); /* drives it in the program's loop */
        vigil_object_watch_get_stats(object_watch, &stats, sizeof(stats));
    }
    vigil_object_watch_free(object_watch);
    CHECK(kept && kept->version == 7 && live_pods == 1);
    release_pod(kept);
    finish(client);
}

/* Keys have no prefix for the program, and pages continue behind the right one. */
static void client_with_a_prefix_watches_its_objects(void)
{
    vigil_options client_options;
    vigil_client *client, *whole = new_client();
    vigil_object_options options;
    default_options(&client_options);
    client_options.prefix = "tenant/";
    CHECK(vigil_client_new(&client_options, &client, NULL) == VIGIL_OK);
    put(whole, "tenan", "n/before@-#1");
    int64_t revision = put(client, "a", "n/a@-#1");
    put(client, "b", "n/b@-#1");
    put(whole, "tenant0", "n/after@-#1");
    struct record *record = record_new(client);
    options_for(&options, "", true, 0);
    options.page_limit = 1;
    record->bookmarks = true;
    start(record, &options);
    expect(record, ADDED, "a", "n/a@-#1", revision);
    expect(record, ADDED, "b", "n/b@-#1", revision + 1);
    CHECK(next_note(record)->type == VIGIL_OBJECT_BOOKMARK);
    put(whole, "other", "n/other@-#1");
    revision = put(whole, "tenant/c", "n/c@-#1");
    expect(record, ADDED, "c", "n/c@-#1", revision);
    record_free(record);
    vigil_client_free(whole);
    finish(client);
}

static void object_watch_survives_restarts(void)
{
    enum { OBJECTS = 20, ROUNDS = 3 };
    vigil_client *client = new_client(), *writer = new_client();
    struct record *record = record_new(client);
    vigil_object_options options;
    char key[TEXT_BYTES], value[TEXT_BYTES];
    int64_t first = 0;
    for (int i = 0; i < OBJECTS; i++) {
        snprintf(key, sizeof(key), "/pods/ns/%02d", i);
        int64_t revision = put(writer, key, "ns/foo@-#0");
        first = first ? first : revision;
    }
    options_for(&options, "/pods/", true, 0);
    options.page_limit = 3;
    record->pause_after = 1;
    start(record, &options);
    wait_for(client, &record->events, 1);
    ask("restart"); /* in the middle of the state */
    record->pause_after = 0;
    vigil_object_watch_resume(record->watch);
    for (int i = 0; i < OBJECTS; i++) {
        snprintf(key, sizeof(key), "/pods/ns/%02d", i);
        expect(record, ADDED, key, "ns/foo@-#0", first + i);
    }
    for (int i = 1; i <= ROUNDS; i++) {
        snprintf(value, sizeof(value), "ns/foo@-#%d", i);
        int64_t revision = put(writer, "/pods/ns/00", value);
        expect(record, MODIFIED, "/pods/ns/00", value, revision);
        ask("restart");
    }
    record_free(record);
    vigil_client_free(writer);
    finish(client);
}

const struct suite_test object_tests[] = {
    {"objects_Watch", watch},
    {"objects_ClusterScopedWatch", cluster_scoped_watch},
    {"objects_NamespaceScopedWatch", namespace_scoped_watch},
    {"objects_DeleteTriggerWatch", delete_trigger_watch},
    {"objects_WatchFromZero", watch_from_zero},
    {"objects_WatchFromNonZero", watch_from_non_zero},
    {"objects_DelayedWatchDelivery", delayed_watch_delivery},
    {"objects_WatchChanSync", watch_chan_sync},
    {"objects_WatchError", watch_error},
    {"objects_WatchErrorEventIsBlockingFurtherEvent", watch_error_event_is_blocking_further_event},
    {"objects_WatchWithUnsafeDelete", watch_with_unsafe_delete},
    {"objects_WatchErrorIncorrectConfiguration", watch_error_incorrect_configuration},
    {"objects_WatchContextCancel", watch_context_cancel},
    {"objects_WatchErrResultNotBlockAfterCancel", watch_err_result_not_block_after_cancel},
    {"objects_WatchDeleteEventObjectHaveLatestRV", watch_delete_event_object_have_latest_rv},
    {"objects_WatchInitializationSignal", watch_initialization_signal},
    {"objects_ProgressNotify", progress_notify},
    {"objects_WatcherTimeout", watcher_timeout},
    {"large_pages_are_divided", large_pages_are_divided},
    {"compacted_revision_is_expired", compacted_revision_is_expired},
    {"state_that_is_compacted_is_expired", state_that_is_compacted_is_expired},
    {"previous_value_is_there_or_its_absence_is_an_error",
     previous_value_is_there_or_its_absence_is_an_error},
    {"shutdown_ends_object_watches_without_an_error",
     shutdown_ends_object_watches_without_an_error},
    {"client_is_freed_before_its_object_watches", client_is_freed_before_its_object_watches},
    {"objects_can_be_kept", objects_can_be_kept},
    {"client_with_a_prefix_watches_its_objects", client_with_a_prefix_watches_its_objects},
    {"object_watch_survives_restarts", object_watch_survives_restarts},
    {NULL, NULL},
};

/*
 * Watches of objects. The tests that begin with objects_ are the cases of Kubernetes'
 * storage/testing/watcher_tests.go and storage/etcd3/watcher_test.go, under their names. How
 * watches end is tested in object_ends.c.
 */
#include "objects.h"

/* -- Steps: a table of puts and the event that each one yields -- */

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
            record_expect(record, steps[i].type, key,
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
        record_expect(late, note->type, note->key, note->value, note->revision);
    }
    record_free(late);
    record_free(record);
}

static void run_scenarios(const struct scenario *scenarios, size_t count)
{
    vigil_client *client = new_client();
    for (size_t i = 0; i < count; i++)
        run_scenario(client, &scenarios[i]);
    objects_finish(client);
}

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
    record_expect(record, DELETED, "/pods/ns/foo", "ns/foo@-#1", revision);
    record_free(record);
    objects_finish(client);
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
        record_expect(record, ADDED, "/pods/ns/foo", value, revision);
        CHECK(record->notes[0].initial);
        record_free(record);
    }
    objects_finish(client);
}

static void watch_from_non_zero(void)
{
    vigil_client *client = new_client();
    int64_t revision = put(client, "/pods/ns/foo", "ns/foo@-#1");
    struct record *record = watch_pods(client, "/pods/ns/foo", false, revision, NULL);
    revision = put(client, "/pods/ns/foo", "ns/foo@-#2");
    record_expect(record, MODIFIED, "/pods/ns/foo", "ns/foo@-#2", revision);
    CHECK(!record->notes[0].initial);
    record_free(record);
    objects_finish(client);
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
        record_expect(record, ADDED, key, value, revisions[i]);
    }
    record_free(record);
    objects_finish(client);
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
        objects_options(&options, cases[i].key, true, 0);
        options.page_limit = cases[i].limit;
        record->bookmarks = true;
        record->pause_after = cases[i].objects ? 1 : 0; /* after the first page */
        record_start(record, &options);
        objects_wait(client, &record->events, 1);
        int64_t later = put(writer, "/pods/third/bar", "third/bar@-#1");
        record->pause_after = 0;
        vigil_object_watch_resume(record->watch);
        if (cases[i].objects) {
            record_expect(record, ADDED, "/pods/first/bar", "first/bar@-#1", state - 1);
            record_expect(record, ADDED, "/pods/second/bar", "second/bar@-#1", state);
        }
        CHECK(record_next(record)->type == VIGIL_OBJECT_BOOKMARK);
        CHECK(record->notes[cases[i].objects].initial);
        CHECK(record->notes[cases[i].objects].revision == later - 1);
        CHECK(record->notes[cases[i].objects].batch_revision == later - 1);
        if (cases[i].objects)
            record_expect(record, ADDED, "/pods/third/bar", "third/bar@-#1", later);
        vigil_object_watch_get_stats(record->watch, &stats, sizeof(stats));
        CHECK(stats.pages == cases[i].pages);
        CHECK(stats.events == cases[i].objects + (cases[i].objects > 0));
        record_free(record);
        must(vigil_delete(writer, vigil_text("/pods/third/bar")));
    }
    vigil_client_free(writer);
    objects_finish(client);
}

static void pod_text(int i, char *key, char *value)
{
    snprintf(key, TEXT_BYTES, "/pods/ns/pod-%d", i);
    snprintf(value, TEXT_BYTES, "ns/pod-%d@-#1", i);
}

static int64_t put_pod(vigil_client *client, int i)
{
    char key[TEXT_BYTES], value[TEXT_BYTES];
    pod_text(i, key, value);
    return put(client, key, value);
}

static void expect_pod(struct record *record, int i, bool initial, int64_t revision)
{
    char key[TEXT_BYTES], value[TEXT_BYTES];
    pod_text(i, key, value);
    record_expect(record, ADDED, key, value, revision);
    CHECK(record->notes[record->taken - 1].initial == initial);
}

static void expect_state_end(struct record *record, int64_t revision)
{
    record_expect(record, VIGIL_OBJECT_BOOKMARK, "", "", revision);
    CHECK(record->notes[record->taken - 1].initial);
}

static struct record *watch_with_bookmarks(vigil_client *client, int64_t revision)
{
    struct record *record = record_new(client);
    vigil_object_options options;
    objects_options(&options, "/pods/", true, revision);
    record->bookmarks = true;
    record_start(record, &options);
    return record;
}

/* From the state, from a past revision, and from the current one: what existed, what is marked, and
 * what follows. */
static void watch_semantics(void)
{
    enum { BEFORE = 3, AFTER = 3 };
    vigil_client *client = new_client();
    int64_t first = put_pod(client, 0);
    for (int i = 1; i < BEFORE; i++)
        put_pod(client, i);
    struct record *state = watch_with_bookmarks(client, 0);
    struct record *past = watch_with_bookmarks(client, first);
    struct record *now = watch_with_bookmarks(client, first + BEFORE - 1);
    for (int i = 0; i < BEFORE; i++)
        expect_pod(state, i, true, first + i);
    expect_state_end(state, first + BEFORE - 1);
    for (int i = 1; i < BEFORE; i++)
        expect_pod(past, i, false, first + i);
    struct record *records[] = {state, past, now};
    for (int i = BEFORE; i < BEFORE + AFTER; i++)
        put_pod(client, i);
    for (size_t j = 0; j < COUNT(records); j++) {
        for (int i = BEFORE; i < BEFORE + AFTER; i++)
            expect_pod(records[j], i, false, first + i);
        record_free(records[j]);
    }
    objects_finish(client);
}

/* The state ends with the revision of the store, also if its last change was a deletion. */
static void watch_semantic_initial_events_extended(void)
{
    vigil_client *client = new_client();
    int64_t first = put_pod(client, 0);
    put_pod(client, 1);
    put_pod(client, 2);
    int64_t deleted = must(vigil_delete(client, vigil_text("/pods/ns/pod-1")));
    struct record *record = watch_with_bookmarks(client, 0);
    expect_pod(record, 0, true, first);
    expect_pod(record, 2, true, first + 2);
    expect_state_end(record, deleted);
    record_free(record);
    objects_finish(client);
}

static void watch_list_match_single(void)
{
    vigil_client *client = new_client();
    const struct selector one = {.name = "pod-1"};
    for (int i = 0; i < 3; i++)
        put_pod(client, i);
    int64_t revision = current_revision(client);
    struct record *record = watch_pods(client, "/pods/", true, 0, &one);
    vigil_object_watch_stats stats;
    expect_pod(record, 1, true, revision - 1);
    put_pod(client, 0);
    must(vigil_delete(client, vigil_text("/pods/ns/pod-2")));
    int64_t deleted = must(vigil_delete(client, vigil_text("/pods/ns/pod-1")));
    record_expect(record, DELETED, "/pods/ns/pod-1", "ns/pod-1@-#1", deleted);
    vigil_object_watch_get_stats(record->watch, &stats, sizeof(stats));
    CHECK(stats.events == 2 && stats.filtered == 4);
    record_free(record);
    objects_finish(client);
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
    objects_wait(client, &large.done, 1);
    CHECK(large.objects == OBJECTS);
    vigil_object_watch_get_stats(object_watch, &stats, sizeof(stats));
    CHECK(stats.pages > OBJECTS / (LIMIT / BYTES) && stats.batch_events_max < LIMIT / BYTES);
    vigil_object_watch_free(object_watch);
    vigil_client_free(writer);
    vigil_client_free(client);
}

/* -- Events -- */

static void watch_delete_event_object_have_latest_rv(void)
{
    vigil_client *client = new_client();
    int64_t stored = put(client, "/pods/ns/foo", "ns/foo@-#1");
    struct record *record = watch_pods(client, "/pods/ns/foo", false, stored, NULL);
    int64_t deleted = must(vigil_delete(client, vigil_text("/pods/ns/foo")));
    const struct note *note = record_next(record);
    CHECK(note->type == DELETED && note->revision == deleted && deleted > stored);
    record_free(record);
    objects_finish(client);
}

/* The end of the state is marked, also when there is none. */
static void watch_initialization_signal(void)
{
    vigil_client *client = new_client();
    for (int i = 0; i < 2; i++) {
        int64_t revision = i ? put(client, "/pods/ns/foo", "ns/foo@-#1") : current_revision(client);
        struct record *record = record_new(client);
        vigil_object_options options;
        objects_options(&options, "/pods/", true, 0);
        record->bookmarks = true;
        record_start(record, &options);
        if (i)
            record_expect(record, ADDED, "/pods/ns/foo", "ns/foo@-#1", revision);
        record_expect(record, VIGIL_OBJECT_BOOKMARK, "", "", revision);
        CHECK(record->notes[i].initial && record->notes[i].batch_revision == revision);
        record_free(record);
    }
    objects_finish(client);
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
    objects_options(&options, "/pods/", true, revision);
    options.progress_notify = 1;
    record->bookmarks = true;
    record_start(record, &options);
    int64_t elsewhere = put(client, "/nodes/a", "x");
    const struct note *note;
    do {
        note = record_next(record);
        CHECK(note->type == VIGIL_OBJECT_BOOKMARK && !note->initial);
        CHECK(note->revision >= revision && note->key[0] == '\0');
        CHECK(note->revision == note->batch_revision);
    } while (note->revision < elsewhere);
    CHECK(vigil_object_watch_revision(record->watch) == elsewhere);
    vigil_object_watch_get_stats(record->watch, &stats, sizeof(stats));
    CHECK(stats.bookmarks > 0 && stats.events == 0);
    record_free(record);
    objects_finish(client);
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
    objects_options(&options, "/pods/", true, revision);
    options.buffer_bytes = BUFFER;
    paused->pause_after = 1;
    record_start(paused, &options);
    for (int i = 1; i <= PUTS; i++) {
        snprintf(value, sizeof(value), "ns/foo@-#%d", i);
        put(client, "/pods/ns/foo", value);
        record_expect(other, MODIFIED, "/pods/ns/foo", value, revision + i);
    }
    objects_wait(client, &paused->events, 1);
    paused->pause_after = 0;
    vigil_object_watch_resume(paused->watch);
    for (int i = 1; i <= PUTS; i++) {
        snprintf(value, sizeof(value), "ns/foo@-#%d", i);
        record_expect(paused, MODIFIED, "/pods/ns/foo", value, revision + i);
    }
    vigil_object_watch_get_stats(paused->watch, &stats, sizeof(stats));
    CHECK(stats.events == PUTS && stats.pauses >= 1 && stats.queued_bytes == 0);
    CHECK(stats.queued_bytes_max > 0 && stats.queued_bytes_max <= BUFFER);
    record_free(other);
    record_free(paused);
    objects_finish(client);
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

static void decoded_objects_can_be_kept(void)
{
    vigil_client *client = new_client();
    vigil_object_options options;
    vigil_object_watch *object_watch;
    vigil_object_watch_stats stats = {0};
    struct pod *kept = NULL;
    put(client, "/pods/ns/foo", "ns/foo@-#7");
    objects_options(&options, "/pods/ns/foo", false, 0);
    options.decode = decode_for_keeping;
    CHECK(vigil_object_watch_new(client, &options, keep_pods, &kept, &object_watch) == VIGIL_OK);
    while (stats.bookmarks == 0) {
        current_revision(client); /* drives it in the program's loop */
        vigil_object_watch_get_stats(object_watch, &stats, sizeof(stats));
    }
    vigil_object_watch_free(object_watch);
    CHECK(kept && kept->version == 7 && live_pods == 1);
    release_pod(kept);
    objects_finish(client);
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
    objects_options(&options, "", true, 0);
    options.page_limit = 1;
    record->bookmarks = true;
    record_start(record, &options);
    record_expect(record, ADDED, "a", "n/a@-#1", revision);
    record_expect(record, ADDED, "b", "n/b@-#1", revision + 1);
    CHECK(record_next(record)->type == VIGIL_OBJECT_BOOKMARK);
    put(whole, "other", "n/other@-#1");
    revision = put(whole, "tenant/c", "n/c@-#1");
    record_expect(record, ADDED, "c", "n/c@-#1", revision);
    record_free(record);
    vigil_client_free(whole);
    objects_finish(client);
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
    objects_options(&options, "/pods/", true, 0);
    options.page_limit = 3;
    record->pause_after = 1;
    record_start(record, &options);
    objects_wait(client, &record->events, 1);
    ask("restart"); /* in the middle of the state */
    record->pause_after = 0;
    vigil_object_watch_resume(record->watch);
    for (int i = 0; i < OBJECTS; i++) {
        snprintf(key, sizeof(key), "/pods/ns/%02d", i);
        record_expect(record, ADDED, key, "ns/foo@-#0", first + i);
    }
    for (int i = 1; i <= ROUNDS; i++) {
        snprintf(value, sizeof(value), "ns/foo@-#%d", i);
        int64_t revision = put(writer, "/pods/ns/00", value);
        record_expect(record, MODIFIED, "/pods/ns/00", value, revision);
        ask("restart");
    }
    record_free(record);
    vigil_client_free(writer);
    objects_finish(client);
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
    {"objects_WatchSemantics", watch_semantics},
    {"objects_WatchSemanticInitialEventsExtended", watch_semantic_initial_events_extended},
    {"objects_WatchListMatchSingle", watch_list_match_single},
    {"objects_WatchDeleteEventObjectHaveLatestRV", watch_delete_event_object_have_latest_rv},
    {"objects_WatchInitializationSignal", watch_initialization_signal},
    {"objects_ProgressNotify", progress_notify},
    {"objects_WatcherTimeout", watcher_timeout},
    {"large_pages_are_divided", large_pages_are_divided},
    {"decoded_objects_can_be_kept", decoded_objects_can_be_kept},
    {"client_with_a_prefix_watches_its_objects", client_with_a_prefix_watches_its_objects},
    {"object_watch_survives_restarts", object_watch_survives_restarts},
    {NULL, NULL},
};

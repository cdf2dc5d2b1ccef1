/* Watches of configmaps that have the label `test`. */
#include "suite.h"

enum { EVENTS_MAX = 4096 };

/* What a watch has delivered: "ADDED one 1", or "ENDED complete". Written by its callback before
 * the latch counts the event. */
struct record {
    struct latch latch;
    vigil_kube *kube;
    vigil_kube_watch *watch;
    vigil_kube_watch_options options;
    char *lines[EVENTS_MAX];
    long count;
    int pauses;        /* after every event */
    int frees;         /* in the first event */
    long long version; /* version of the last event; only increases */
    int end, end_code;
};

static void note_version(struct record *record, vigil_bytes version)
{
    char text[32] = "";
    CHECK(version.size > 0 && version.size < sizeof(text));
    memcpy(text, version.data, version.size);
    CHECK(strtoll(text, NULL, 10) > record->version);
    record->version = strtoll(text, NULL, 10);
}

static void note_object(const vigil_kube_event *event, char *line, size_t size)
{
    static const char *const types[] = {"ADDED", "MODIFIED", "DELETED"};
    vigil_bytes name = vigil_kube_object_name(event->object), value;
    char key[64] = "";
    if (vigil_kube_object_json(event->object).size &&
        vigil_json_find(vigil_kube_object_json(event->object), "data.key", &value))
        CHECK(vigil_json_text(value, key, sizeof(key), NULL));
    snprintf(line, size, "%s %.*s %s", types[event->type], (int)name.size, (const char *)name.data,
             key);
}

static int on_event(vigil_kube_watch *watch, const vigil_kube_event *event, void *user)
{
    struct record *record = user;
    char line[256];
    if (event->type == VIGIL_KUBE_BOOKMARK &&
        !(event->initial_end && record->options.initial_events))
        return VIGIL_KUBE_CONTINUE;
    if (event->type == VIGIL_KUBE_BOOKMARK) {
        snprintf(line, sizeof(line), "INITIAL END");
    } else if (event->type == VIGIL_KUBE_ENDED) {
        snprintf(line, sizeof(line), "ENDED %d", event->end);
        record->end = event->end;
        record->end_code = event->status ? event->status->code : 0;
    } else {
        CHECK(event->type != VIGIL_KUBE_ERROR);
        note_object(event, line, sizeof(line));
        if (!record->options.initial_events && record->options.version)
            note_version(record, event->version);
    }
    CHECK(record->count < EVENTS_MAX);
    record->lines[record->count] = strdup(line);
    CHECK(record->lines[record->count++]);
    if (record->frees)
        vigil_kube_watch_free(watch);
    latch_add(&record->latch, 1);
    return record->pauses ? VIGIL_KUBE_PAUSE : VIGIL_KUBE_CONTINUE;
}

static struct record *record_new(void)
{
    struct record *record = calloc(1, sizeof(*record));
    CHECK(record);
    record->latch = (struct latch)LATCH_INIT;
    record->kube = new_kube();
    vigil_kube_watch_options_init(&record->options);
    record->options.target = configmap(NULL);
    record->options.label_selector = "test";
    return record;
}

static void begin(struct record *record)
{
    CHECK(vigil_kube_watch_new(record->kube, &record->options, on_event, record, &record->watch) ==
          VIGIL_OK);
}

static void record_free(struct record *record)
{
    if (!record->frees)
        vigil_kube_watch_free(record->watch);
    vigil_kube_free(record->kube);
    for (long i = 0; i < record->count; i++)
        free(record->lines[i]);
    free(record);
}

static void expect_line(struct record *record, long number, const char *line)
{
    latch_wait(&record->latch, number + 1);
    if (strcmp(record->lines[number], line) != 0) {
        fprintf(stderr, "event %ld is \"%s\" and not \"%s\"\n", number, record->lines[number],
                line);
        abort();
    }
}

/* The version of the collection. */
static const char *list_version(vigil_kube *kube)
{
    static char version[64];
    vigil_kube_target all = configmap(NULL);
    vigil_kube_call *call = must_run(vigil_kube_list(kube, &all, NULL));
    snprintf(version, sizeof(version), "%s", vigil_kube_call_version(call));
    vigil_kube_call_free(call);
    return version;
}

static void update_configmap(vigil_kube *kube, const char *name, const char *value)
{
    vigil_kube_target one = configmap(name);
    EXPECT(vigil_kube_update(kube, &one, configmap_json(name, value), NULL), VIGIL_OK);
}

static void delete_configmap(vigil_kube *kube, const char *name)
{
    vigil_kube_target one = configmap(name);
    EXPECT(vigil_kube_delete(kube, &one, NULL), VIGIL_OK);
}

/* -- Events -- */

static void change(vigil_kube *kube)
{
    create_configmap(kube, "one", "1");
    update_configmap(kube, "one", "2");
    create_configmap(kube, "two", "1");
    delete_configmap(kube, "one");
}

static void changes_are_delivered_in_order(void)
{
    struct record *record = record_new();
    record->options.version = list_version(record->kube);
    begin(record);
    change(record->kube);
    expect_line(record, 0, "ADDED one 1");
    expect_line(record, 1, "MODIFIED one 2");
    expect_line(record, 2, "ADDED two 1");
    expect_line(record, 3, "DELETED one 2");
    vigil_kube_watch_stats stats;
    vigil_kube_watch_get_stats(record->watch, &stats, sizeof(stats));
    CHECK(stats.events == 4 && stats.requests == 1 && stats.bytes > 400);
    record_free(record);
}

static void the_state_comes_first_without_a_version(void)
{
    struct record *record = record_new();
    create_configmap(record->kube, "old", "1");
    begin(record);
    expect_line(record, 0, "ADDED old 1");
    update_configmap(record->kube, "old", "2");
    expect_line(record, 1, "MODIFIED old 2");
    record_free(record);
}

static void initial_events_have_an_end(void)
{
    struct record *record = record_new();
    create_configmap(record->kube, "old", "1");
    record->options.initial_events = 1;
    begin(record);
    expect_line(record, 0, "ADDED old 1");
    expect_line(record, 1, "INITIAL END");
    delete_configmap(record->kube, "old");
    expect_line(record, 2, "DELETED old 1");
    record_free(record);
}

static void one_object_can_be_watched(void)
{
    struct record *record = record_new();
    record->options.target.name = "two";
    record->options.version = list_version(record->kube);
    begin(record);
    change(record->kube);
    delete_configmap(record->kube, "two");
    expect_line(record, 0, "ADDED two 1");
    expect_line(record, 1, "DELETED two 1");
    record_free(record);
}

static void objects_can_be_protobuf(void)
{
    struct record *record = record_new();
    record->options.version = list_version(record->kube);
    record->options.protobuf = 1;
    begin(record);
    change(record->kube);
    expect_line(record, 0, "ADDED one ");
    expect_line(record, 3, "DELETED one ");
    record_free(record);
}

static void large_objects_arrive(void)
{
    enum { BYTES = 900000 };
    struct record *record = record_new();
    vigil_kube_target all = configmap(NULL);
    char *json = malloc(BYTES + 200);
    CHECK(json);
    record->options.version = list_version(record->kube);
    begin(record);
    int n =
        sprintf(json, "{\"metadata\":{\"name\":\"big\",\"labels\":{\"test\":\"big\"}},\"data\":{"
                      "\"key\":\"1\",\"text\":\"");
    memset(json + n, 'x', BYTES);
    memcpy(json + n + BYTES, "\"}}", 4);
    EXPECT(vigil_kube_create(record->kube, &all, vigil_text(json), NULL), VIGIL_OK);
    expect_line(record, 0, "ADDED big 1");
    free(json);
    record_free(record);
}

/* -- Ends -- */

static void an_invalid_version_is_refused(void)
{
    struct record *record = record_new();
    record->options.version = "abc";
    begin(record);
    latch_wait(&record->latch, 1);
    CHECK(record->end == VIGIL_KUBE_END_REFUSED && record->end_code >= 400);
    record_free(record);
}

static void an_unknown_resource_is_refused(void)
{
    struct record *record = record_new();
    record->options.target.resource = "nothings";
    begin(record);
    latch_wait(&record->latch, 1);
    CHECK(record->end == VIGIL_KUBE_END_REFUSED && record->end_code == 404);
    record_free(record);
}

static void the_server_ends_a_watch_after_its_time(void)
{
    struct record *record = record_new();
    record->options.version = list_version(record->kube);
    record->options.timeout_s = 1;
    begin(record);
    latch_wait(&record->latch, 1);
    CHECK(record->end == VIGIL_KUBE_END_COMPLETE);
    record_free(record);
}

static void a_resumed_watch_does_not_end(void)
{
    struct record *record = record_new();
    vigil_kube_watch_stats stats = {0};
    char value[16];
    record->options.version = list_version(record->kube);
    record->options.timeout_s = 1;
    record->options.resume = 1;
    begin(record);
    create_configmap(record->kube, "one", "0");
    long count = 1;
    for (; stats.ends_complete < 2; count++) {
        snprintf(value, sizeof(value), "%ld", count);
        update_configmap(record->kube, "one", value);
        latch_wait(&record->latch, count + 1);
        vigil_kube_watch_get_stats(record->watch, &stats, sizeof(stats));
        CHECK(count < EVENTS_MAX - 1);
        struct timespec pause = {.tv_nsec = 20000000};
        nanosleep(&pause, NULL);
    }
    for (long i = 1; i < count; i++) {
        char line[64];
        snprintf(line, sizeof(line), "MODIFIED one %ld", i);
        expect_line(record, i, line);
    }
    record_free(record);
}

/* -- The program's side -- */

static void a_paused_watch_delivers_later(void)
{
    struct record *record = record_new();
    record->options.version = list_version(record->kube);
    record->pauses = 1;
    begin(record);
    change(record->kube);
    static const char *const lines[] = {"ADDED one 1", "MODIFIED one 2", "ADDED two 1",
                                        "DELETED one 2"};
    for (long i = 0; i < 4; i++) {
        expect_line(record, i, lines[i]);
        vigil_kube_watch_resume(record->watch);
    }
    record_free(record);
}

static void a_watch_may_be_freed_in_its_callback(void)
{
    struct record *record = record_new();
    record->options.version = list_version(record->kube);
    record->frees = 1;
    begin(record);
    change(record->kube);
    expect_line(record, 0, "ADDED one 1");
    (void)list_version(record->kube);
    CHECK(record->count == 1);
    record_free(record);
}

static void many_watches_share_a_client(void)
{
    enum { WATCHES = 300 };
    struct record *record = record_new();
    vigil_kube_watch **watches = calloc(WATCHES, sizeof(vigil_kube_watch *));
    CHECK(watches);
    record->options.initial_events = 1; /* versions repeat */
    for (int i = 0; i < WATCHES; i++)
        CHECK(vigil_kube_watch_new(record->kube, &record->options, on_event, record, &watches[i]) ==
              VIGIL_OK);
    latch_wait(&record->latch, WATCHES);
    create_configmap(record->kube, "one", "1");
    latch_wait(&record->latch, 2 * WATCHES);
    for (int i = 0; i < WATCHES; i++)
        vigil_kube_watch_free(watches[i]);
    CHECK(record->count == 2 * WATCHES);
    free(watches);
    record_free(record);
}

const struct suite_test watch_tests[] = {
    {"changes_are_delivered_in_order", changes_are_delivered_in_order},
    {"the_state_comes_first_without_a_version", the_state_comes_first_without_a_version},
    {"initial_events_have_an_end", initial_events_have_an_end},
    {"one_object_can_be_watched", one_object_can_be_watched},
    {"objects_can_be_protobuf", objects_can_be_protobuf},
    {"large_objects_arrive", large_objects_arrive},
    {"an_invalid_version_is_refused", an_invalid_version_is_refused},
    {"an_unknown_resource_is_refused", an_unknown_resource_is_refused},
    {"the_server_ends_a_watch_after_its_time", the_server_ends_a_watch_after_its_time},
    {"a_resumed_watch_does_not_end", a_resumed_watch_does_not_end},
    {"a_paused_watch_delivers_later", a_paused_watch_delivers_later},
    {"a_watch_may_be_freed_in_its_callback", a_watch_may_be_freed_in_its_callback},
    {"many_watches_share_a_client", many_watches_share_a_client},
    {NULL, NULL},
};

/* -- A server that restarts -- */

static void a_resumed_watch_survives_a_restart(void)
{
    struct record *record = record_new();
    record->options.version = list_version(record->kube);
    record->options.resume = 1;
    begin(record);
    change(record->kube);
    expect_line(record, 3, "DELETED one 2");
    ask("restart");
    update_configmap(record->kube, "two", "2");
    expect_line(record, 4, "MODIFIED two 2");
    vigil_kube_watch_stats stats;
    vigil_kube_watch_get_stats(record->watch, &stats, sizeof(stats));
    CHECK(stats.requests >= 2 && stats.events == 5);
    record_free(record);
}

const struct suite_test watch_restart_tests[] = {
    {"a_resumed_watch_survives_a_restart", a_resumed_watch_survives_a_restart},
    {NULL, NULL},
};

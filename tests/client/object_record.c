#include "objects.h"

#include <poll.h>
#include <time.h>
#include <vigil/poll.h>

_Atomic long live_pods;

int decode_pod(vigil_object *object, vigil_error *error, void *user)
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

void release_pod(void *decoded)
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

int record_batch(vigil_object_watch *watch, vigil_object_batch *batch, void *user)
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

void objects_wait(vigil_client *client, struct latch *latch, long count)
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

struct record *record_new(vigil_client *client)
{
    struct record *record = calloc(1, sizeof(*record));
    CHECK(record);
    record->client = client;
    record->events = record->ended = record->callbacks = (struct latch)LATCH_INIT;
    return record;
}

void objects_options(vigil_object_options *options, const char *key, bool prefix, int64_t revision)
{
    vigil_object_options_init(options);
    options->key = vigil_text(key);
    options->prefix = prefix;
    options->revision = revision;
    options->decode = decode_pod;
    options->release = release_pod;
}

void record_start(struct record *record, const vigil_object_options *options)
{
    CHECK(vigil_object_watch_new(record->client, options, record_batch, record, &record->watch) ==
          VIGIL_OK);
}

struct record *watch_pods(vigil_client *client, const char *key, bool prefix, int64_t revision,
                          const struct selector *selector)
{
    struct record *record = record_new(client);
    vigil_object_options options;
    objects_options(&options, key, prefix, revision);
    if (selector) {
        record->selector = *selector;
        options.matches = pod_matches;
    }
    record_start(record, &options);
    return record;
}

void record_free(struct record *record)
{
    vigil_object_watch_free(record->watch);
    free(record);
}

const struct note *record_next(struct record *record)
{
    objects_wait(record->client, &record->events, (long)record->taken + 1);
    return &record->notes[record->taken++];
}

void record_expect(struct record *record, int type, const char *key, const char *value,
                   int64_t revision)
{
    const struct note *note = record_next(record);
    if (note->type != type || strcmp(note->key, key) != 0 || strcmp(note->value, value) != 0 ||
        note->revision != revision) {
        fprintf(stderr, "wanted %d %s = %s (%lld), got %d %s = %s (%lld)\n", type, key, value,
                (long long)revision, note->type, note->key, note->value, (long long)note->revision);
        abort();
    }
}

void record_expect_end(struct record *record, int status, const char *reason, const char *text)
{
    objects_wait(record->client, &record->ended, 1);
    if (record->error.status != status || strcmp(record->error.error.text, text) != 0)
        fprintf(stderr, "%d: %s\n", record->error.status, record->error.error.text);
    CHECK(record->error.status == status);
    CHECK(strcmp(record->error.reason, reason) == 0);
    CHECK(strcmp(record->error.error.text, text) == 0);
    CHECK((size_t)latch_count(&record->events) == record->taken);
}

int64_t current_revision(vigil_client *client)
{
    return must(vigil_get(client, vigil_text("nothing")));
}

void objects_finish(vigil_client *client)
{
    vigil_client_free(client);
    CHECK(live_pods == 0);
}

#include "inbox.h"

static void copy_text(char *to, vigil_bytes bytes)
{
    size_t size = bytes.size < INBOX_TEXT_BYTES ? bytes.size : INBOX_TEXT_BYTES - 1;
    if (size)
        memcpy(to, bytes.data, size);
    to[size] = 0;
}

static void describe_event(struct delivery *delivery, const vigil_event *event)
{
    delivery->type = event->type;
    copy_text(delivery->key, event->kv->key);
    copy_text(delivery->value, event->kv->value);
    delivery->value_size = event->kv->value.size;
    delivery->has_prev = event->prev_kv != NULL;
    if (event->prev_kv) {
        copy_text(delivery->prev_value, event->prev_kv->value);
        delivery->prev_size = event->prev_kv->value.size;
    }
    delivery->create_revision = event->kv->create_revision;
    delivery->mod_revision = event->kv->mod_revision;
    delivery->version = event->kv->version;
}

static void append(struct inbox *inbox, const vigil_watch_batch *batch, const vigil_event *event)
{
    struct delivery *delivery = calloc(1, sizeof(*delivery));
    CHECK(delivery);
    delivery->what = batch->what;
    delivery->revision = batch->revision;
    delivery->header_revision = batch->header ? batch->header->revision : 0;
    delivery->compact_revision = batch->compact_revision;
    delivery->event_count = batch->event_count;
    if (batch->error)
        delivery->error = *batch->error;
    if (event)
        describe_event(delivery, event);
    pthread_mutex_lock(&inbox->count.mutex);
    *inbox->last = delivery;
    inbox->last = &delivery->next;
    pthread_mutex_unlock(&inbox->count.mutex);
    latch_add(&inbox->count, 1);
}

static int on_batch(vigil_watch *watch, const vigil_watch_batch *batch, void *user)
{
    struct inbox *inbox = user;
    (void)watch;
    CHECK((batch->what == VIGIL_WATCH_EVENTS) == (batch->event_count > 0));
    CHECK((batch->what == VIGIL_WATCH_ENDED) == (batch->error != NULL));
    if (batch->event_count == 0)
        append(inbox, batch, NULL);
    for (size_t i = 0; i < batch->event_count; i++)
        append(inbox, batch, &batch->events[i]);
    return inbox->pause ? VIGIL_WATCH_PAUSE : VIGIL_WATCH_CONTINUE;
}

vigil_watch_options watch_options(const char *key, int64_t revision)
{
    vigil_watch_options options;
    vigil_watch_options_init(&options);
    options.key = vigil_text(key);
    options.revision = revision;
    return options;
}

vigil_watch_options prefix_options(const char *prefix, int64_t revision)
{
    vigil_watch_options options = watch_options(prefix, revision);
    options.prefix = 1;
    return options;
}

void inbox_begin(struct inbox *inbox, vigil_client *client, const vigil_watch_options *options)
{
    *inbox = (struct inbox){.count = LATCH_INIT, .last = &inbox->first};
    CHECK(vigil_watch_new(client, options, on_batch, inbox, &inbox->watch) == VIGIL_OK);
}

int64_t inbox_open(struct inbox *inbox, vigil_client *client, vigil_watch_options options)
{
    /* Afterwards the client's member has everything that was acknowledged at another one. */
    must(vigil_get(client, options.key.size ? options.key : vigil_text("x")));
    options.created_notify = 1;
    inbox_begin(inbox, client, &options);
    struct delivery created = inbox_take(inbox);
    CHECK(created.what == VIGIL_WATCH_CREATED);
    return created.header_revision;
}

int64_t inbox_open_key(struct inbox *inbox, vigil_client *client, const char *key)
{
    return inbox_open(inbox, client, watch_options(key, 0));
}

struct delivery inbox_take(struct inbox *inbox)
{
    latch_wait(&inbox->count, inbox->taken + 1);
    pthread_mutex_lock(&inbox->count.mutex);
    struct delivery *first = inbox->first, copy = *first;
    inbox->first = first->next;
    if (!inbox->first)
        inbox->last = &inbox->first;
    pthread_mutex_unlock(&inbox->count.mutex);
    inbox->taken++;
    free(first);
    return copy;
}

struct delivery inbox_take_event(struct inbox *inbox)
{
    struct delivery delivery = inbox_take(inbox);
    if (delivery.what != VIGIL_WATCH_EVENTS) {
        fprintf(stderr, "an event was expected, not %d: %s\n", delivery.what, delivery.error.text);
        abort();
    }
    return delivery;
}

struct delivery inbox_take_value(struct inbox *inbox, const char *value)
{
    struct delivery delivery = inbox_take_event(inbox);
    if (strcmp(delivery.value, value) != 0) {
        fprintf(stderr, "\"%s\" was expected, not \"%s\"\n", value, delivery.value);
        abort();
    }
    return delivery;
}

struct delivery inbox_take_end(struct inbox *inbox, int code)
{
    struct delivery delivery = inbox_take(inbox);
    if (delivery.what != VIGIL_WATCH_ENDED || delivery.error.code != code) {
        fprintf(stderr, "%s was expected, not %d: %s\n", vigil_code_name(code), delivery.what,
                delivery.error.text);
        abort();
    }
    return delivery;
}

bool inbox_is_empty(struct inbox *inbox)
{
    return latch_count(&inbox->count) == inbox->taken;
}

void inbox_close(struct inbox *inbox)
{
    vigil_watch_free(inbox->watch);
    while (!inbox_is_empty(inbox))
        inbox_take(inbox);
}

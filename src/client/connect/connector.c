#include "client/connect/connector.h"

#include <stdlib.h>

#define IDLE_NS (1 * NS_PER_S)

static void free_buffers(struct connector_buffers *b)
{
    free(b->raw);
    free(b->plain);
    free(b->middle);
    b->raw = b->plain = b->middle = NULL;
}

static void set_timer(struct connector_buffers *b)
{
    loop_timer_set(b->loop, &b->idle, clock_add(loop_now_ns(b->loop), IDLE_NS));
}

static void on_idle(struct timer *timer)
{
    struct connector_buffers *b = CONTAINER_OF(timer, struct connector_buffers, idle);
    /* A client that has nothing to do gives its buffers back; the next use makes new ones. */
    if (!b->used) {
        free_buffers(b);
        return;
    }
    b->used = false;
    set_timer(b);
}

void connector_buffers_fini(struct connector_buffers *b)
{
    if (b->loop)
        loop_timer_cancel(b->loop, &b->idle);
    free_buffers(b);
}

uint8_t *connector_buffer(struct connector_buffers *b, uint8_t **buffer)
{
    assert(buffer == &b->raw || buffer == &b->plain || buffer == &b->middle);
    b->used = true;
    if (!*buffer)
        *buffer = malloc(CONNECTOR_BUFFER_BYTES);
    if (*buffer && !b->idle.set) {
        b->idle.fn = on_idle;
        set_timer(b);
    }
    return *buffer;
}

void connector_init(struct connector *c, const struct connector_options *options)
{
    *c = (struct connector){.options = *options, .own_buffers.loop = options->loop};
    c->buffers = options->buffers ? options->buffers : &c->own_buffers;
}

void connector_fini(struct connector *c)
{
    assert(c->connections == 0);
    connector_buffers_fini(&c->own_buffers);
}

#include "client/call/messages.h"

#include <stdlib.h>

enum status client_messages_push(struct client_message **newest, struct slice bytes)
{
    struct client_message *message =
        malloc(sizeof(*message) + size_max(bytes.len, CLIENT_MESSAGE_ROOM));
    if (!message)
        return ST_NOMEM;
    message->next = *newest ? (*newest)->next : message;
    message->len = bytes.len;
    message->progress = message->early = false;
    slice_copy(message->bytes, bytes);
    if (*newest)
        (*newest)->next = message;
    *newest = message;
    return ST_OK;
}

struct client_message *client_messages_pop(struct client_message **newest)
{
    struct client_message *oldest = (*newest)->next;
    if (oldest == *newest)
        *newest = NULL;
    else
        (*newest)->next = oldest->next;
    return oldest;
}

void client_messages_free(struct client_message **newest)
{
    while (*newest)
        free(client_messages_pop(newest));
}

size_t client_messages_bytes(const struct client_message *newest)
{
    size_t bytes = 0;
    const struct client_message *m = newest;
    do {
        bytes += m ? m->len : 0;
        m = m ? m->next : NULL;
    } while (m != newest);
    return bytes;
}

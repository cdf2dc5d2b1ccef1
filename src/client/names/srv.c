#include "client/names/srv.h"

#include "base/random.h"

#include <stdlib.h>

enum {
    DNS_HEAD_BYTES = 12,
    DNS_POINTER = 0xc0, /* the two highest bits of a length: the name continues elsewhere */
    DNS_TYPE_SRV = 33,
    DNS_CLASS_IN = 1,
    DNS_RCODE_NAME_ERROR = 3,
};

/* -- reading with bounds -- */

static bool take_u16(struct slice *rest, uint16_t *ret_number)
{
    if (rest->len < 2)
        return false;
    *ret_number = (uint16_t)(rest->ptr[0] << 8 | rest->ptr[1]);
    *rest = slice_sub(*rest, 2, rest->len - 2);
    return true;
}

static bool take_bytes(struct slice *rest, size_t len, struct slice *ret_bytes)
{
    if (rest->len < len)
        return false;
    *ret_bytes = slice_sub(*rest, 0, len);
    *rest = slice_sub(*rest, len, rest->len - len);
    return true;
}

/* Does not follow pointers: the name ends at the first one. */
static bool skip_name(struct slice *rest)
{
    struct slice label;
    while (rest->len) {
        uint8_t len = rest->ptr[0];
        if ((len & DNS_POINTER) == DNS_POINTER)
            return take_bytes(rest, 2, &label);
        if (len & DNS_POINTER || !take_bytes(rest, 1 + (size_t)len, &label))
            return false;
        if (len == 0)
            return true;
    }
    return false;
}

enum name_kind { NAME_HOST, NAME_OTHER, NAME_DAMAGED };

/* Appends a label; NAME_OTHER if it has bytes that no host has. */
static enum name_kind append_label(struct slice label, char *host, size_t *used)
{
    enum name_kind kind = NAME_HOST;
    if (*used + label.len + 1 >= SRV_HOST_BYTES)
        return NAME_DAMAGED;
    if (*used)
        host[(*used)++] = '.';
    for (size_t i = 0; i < label.len; i++) {
        host[(*used)++] = (char)label.ptr[i];
        if (!((label.ptr[i] >= 'a' && label.ptr[i] <= 'z') ||
              (label.ptr[i] >= 'A' && label.ptr[i] <= 'Z') ||
              (label.ptr[i] >= '0' && label.ptr[i] <= '9') || label.ptr[i] == '-' ||
              label.ptr[i] == '_'))
            kind = NAME_OTHER;
    }
    return kind;
}

/* A pointer leads to bytes before the part that contains it, so that names end. */
static enum name_kind read_name(struct slice message, size_t at, char host[SRV_HOST_BYTES])
{
    size_t used = 0, limit = message.len;
    enum name_kind kind = NAME_HOST;
    for (size_t start = at; at < limit;) {
        uint8_t len = message.ptr[at];
        if (len == 0) {
            host[used] = 0;
            return used ? kind : NAME_OTHER;
        }
        if ((len & DNS_POINTER) == DNS_POINTER) {
            if (limit - at < 2)
                return NAME_DAMAGED;
            limit = start;
            start = at = (size_t)(len & ~DNS_POINTER) << 8 | message.ptr[at + 1];
            continue;
        }
        if (len & DNS_POINTER || limit - at <= len)
            return NAME_DAMAGED;
        enum name_kind label = append_label(slice_sub(message, at + 1, len), host, &used);
        if (label != NAME_HOST)
            kind = label;
        if (label == NAME_DAMAGED)
            return NAME_DAMAGED;
        at += 1 + (size_t)len;
    }
    return NAME_DAMAGED;
}

/* -- the message -- */

struct dns_record {
    uint16_t type, class;
    struct slice data;
};

static bool take_record(struct slice *rest, struct dns_record *ret_record)
{
    struct slice ttl;
    uint16_t len;
    return skip_name(rest) && take_u16(rest, &ret_record->type) &&
           take_u16(rest, &ret_record->class) && take_bytes(rest, 4, &ttl) &&
           take_u16(rest, &len) && take_bytes(rest, len, &ret_record->data);
}

static enum name_kind read_target(struct slice message, struct slice data,
                                  struct srv_target *target)
{
    if (!take_u16(&data, &target->priority) || !take_u16(&data, &target->weight) ||
        !take_u16(&data, &target->port))
        return NAME_DAMAGED;
    struct slice name = data;
    if (!skip_name(&name)) /* the name lies within its record */
        return NAME_DAMAGED;
    return read_name(message, (size_t)(data.ptr - message.ptr), target->host);
}

static enum status read_records(struct slice message, struct slice rest, unsigned count,
                                struct srv_target *targets, size_t *ret_count)
{
    size_t found = 0;
    for (unsigned i = 0; i < count && found < SRV_TARGETS_MAX; i++) {
        struct dns_record record;
        if (!take_record(&rest, &record))
            return ST_MALFORMED;
        if (record.type != DNS_TYPE_SRV || record.class != DNS_CLASS_IN)
            continue;
        enum name_kind kind = read_target(message, record.data, &targets[found]);
        if (kind == NAME_DAMAGED)
            return ST_MALFORMED;
        found += kind == NAME_HOST;
    }
    if (!found)
        return ST_NOT_FOUND;
    *ret_count = found;
    return ST_OK;
}

enum status srv_parse(struct slice answer, struct srv_target *targets, size_t *ret_count)
{
    struct slice rest = answer, skipped;
    uint16_t flags, questions, answers;
    if (answer.len < DNS_HEAD_BYTES || answer.len > SRV_ANSWER_BYTES)
        return ST_MALFORMED;
    rest = slice_sub(rest, 2, rest.len - 2); /* the identifier */
    if (!take_u16(&rest, &flags) || !take_u16(&rest, &questions) || !take_u16(&rest, &answers) ||
        !take_bytes(&rest, 4, &skipped))
        return ST_MALFORMED;
    if ((flags & 0xf) == DNS_RCODE_NAME_ERROR)
        return ST_NOT_FOUND;
    if (flags & 0xf)
        return ST_AGAIN;
    for (unsigned i = 0; i < questions; i++)
        if (!skip_name(&rest) || !take_bytes(&rest, 4, &skipped))
            return ST_MALFORMED;
    return read_records(answer, rest, answers, targets, ret_count);
}

/* -- order -- */

static int compare(const void *a, const void *b)
{
    const struct srv_target *x = a, *y = b;
    if (x->priority != y->priority)
        return x->priority < y->priority ? -1 : 1;
    return (x->weight > y->weight) - (x->weight < y->weight);
}

/* Each next target is drawn with a probability that is proportional to its weight. */
static void shuffle(struct srv_target *targets, size_t count, struct random *random)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += targets[i].weight;
    for (; sum && count > 1; targets++, count--) {
        uint64_t drawn = random_below(random, sum), seen = 0;
        size_t at = 0;
        while ((seen += targets[at].weight) <= drawn)
            at++;
        struct srv_target chosen = targets[at];
        memmove(targets + 1, targets, at * sizeof(*targets));
        targets[0] = chosen;
        sum -= chosen.weight;
    }
}

void srv_order(struct srv_target *targets, size_t count, struct random *random)
{
    if (count < 2)
        return;
    qsort(targets, count, sizeof(*targets), compare);
    for (size_t begin = 0, end; begin < count; begin = end) {
        for (end = begin + 1; end < count && targets[end].priority == targets[begin].priority;)
            end++;
        shuffle(targets + begin, end - begin, random);
    }
}

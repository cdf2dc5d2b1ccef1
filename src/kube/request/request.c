#include "kube/request/request.h"

#include "codec/go_duration.h"

#include <errno.h>
#include <stdlib.h>
#include <strings.h>

/* -- Percent encoding -- */

static int hex_value(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

enum status kube_percent_decode(struct arena *arena, struct slice text, bool query,
                                struct slice *ret_text)
{
    *ret_text = text;
    if (!(text.len &&
          (memchr(text.ptr, '%', text.len) || (query && memchr(text.ptr, '+', text.len)))))
        return ST_OK;
    uint8_t *to = arena_alloc(arena, text.len);
    size_t len = 0;
    if (!to)
        return ST_NOMEM;
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = text.ptr[i];
        if (c == '%') {
            int high = i + 2 < text.len ? hex_value(text.ptr[i + 1]) : -1;
            int low = i + 2 < text.len ? hex_value(text.ptr[i + 2]) : -1;
            if (high < 0 || low < 0)
                return ST_MALFORMED;
            c = (uint8_t)(high << 4 | low);
            i += 2;
        } else if (c == '+' && query) {
            c = ' ';
        }
        to[len++] = c;
    }
    *ret_text = slice_of(to, len);
    return ST_OK;
}

/* -- Paths -- */

enum { PARTS_MAX = 9 };

/* The parts between slashes. *ret_more: there are more than PARTS_MAX. */
static enum status path_parts(struct arena *arena, struct slice path, struct slice parts[PARTS_MAX],
                              size_t *ret_count, bool *ret_more)
{
    size_t count = 0;
    *ret_more = false;
    while (path.len) {
        struct slice part = slice_cut(&path, '/');
        if (!part.len)
            continue;
        *ret_more = count == PARTS_MAX;
        if (*ret_more)
            break;
        enum status status = kube_percent_decode(arena, part, false, &parts[count]);
        if (status == ST_MALFORMED)
            return ST_NOT_FOUND;
        TRY(status);
        if (memchr(parts[count].ptr, '/', parts[count].len))
            return ST_NOT_FOUND;
        count++;
    }
    *ret_count = count;
    return ST_OK;
}

struct steps {
    const struct slice *at, *end;
    bool more; /* behind the end */
};

static struct slice step(struct steps *steps)
{
    return steps->at < steps->end ? *steps->at++ : SLICE_EMPTY;
}

/* Parses what follows group, version and an old "watch". */
static enum status resource_parse(struct steps *steps, struct kube_path *path)
{
    size_t left = (size_t)(steps->end - steps->at);
    /* /namespaces/x is the namespace itself, also with a subresource. */
    if (left > 2 && slice_is(steps->at[0], "namespaces") && !slice_is(steps->at[2], "status") &&
        !slice_is(steps->at[2], "finalize")) {
        step(steps);
        path->namespace = step(steps);
    }
    path->resource = step(steps);
    path->name = step(steps);
    path->subresource = step(steps);
    bool ends = steps->at == steps->end && !steps->more;
    return ends || slice_is(path->subresource, "proxy") ? ST_OK : ST_NOT_FOUND;
}

enum status kube_path_parse(struct arena *arena, struct slice text, struct kube_path *ret_path)
{
    struct slice parts[PARTS_MAX];
    size_t count = 0;
    bool more;
    *ret_path = (struct kube_path){0};
    TRY(path_parts(arena, text, parts, &count, &more));
    struct steps steps = {parts, parts + count, more};
    struct slice root = step(&steps);
    if (slice_is(root, "apis"))
        ret_path->group = step(&steps);
    else if (!slice_is(root, "api"))
        return ST_NOT_FOUND;
    ret_path->version = step(&steps);
    if (!ret_path->version.len)
        return ST_NOT_FOUND;
    if (steps.at < steps.end && slice_is(*steps.at, "watch")) {
        ret_path->watch = true;
        step(&steps);
    }
    return resource_parse(&steps, ret_path);
}

/* -- Queries -- */

/* As Kubernetes converts them: everything is true but "0", and "false" in any case. */
static bool parse_bool(struct slice text)
{
    return !slice_is(text, "0") &&
           !(text.len == 5 && strncasecmp((const char *)text.ptr, "false", 5) == 0);
}

/* As Go's strconv.ParseBool, of which Kubernetes ignores the error. */
static bool is_go_true(struct slice text)
{
    static const char *const yes[] = {"1", "t", "T", "true", "True", "TRUE"};
    bool is = false;
    for (size_t i = 0; i < COUNT_OF(yes); i++)
        is = is || slice_is(text, yes[i]);
    return is;
}

/* As Go's strconv.ParseInt; "" is not given. */
static bool parse_number(struct slice text, int64_t *ret_number, struct kube_status *status)
{
    char digits[32] = "";
    char *end = digits;
    slice_copy((uint8_t *)digits, slice_sub(text, 0, size_min(text.len, sizeof(digits) - 1)));
    errno = 0;
    long long number = digits[0] > ' ' ? strtoll(digits, &end, 10) : 0;
    const char *wrong = end == digits || *end                              ? "invalid syntax"
                        : errno == ERANGE || text.len > sizeof(digits) - 1 ? "value out of range"
                                                                           : NULL;
    if (wrong)
        return kube_fail(status, KUBE_BAD_REQUEST, "strconv.ParseInt: parsing \"%.*s\": %s",
                         SLICE_ARGS(text), wrong);
    *ret_number = number;
    return true;
}

static bool parse_option(struct slice name, struct slice value, struct kube_query *query,
                         struct kube_status *status)
{
    const struct {
        const char *name;
        struct slice *text;
        bool *truth;
        int64_t *number;
    } options[] = {
        {"labelSelector", &query->label_selector, NULL, NULL},
        {"fieldSelector", &query->field_selector, NULL, NULL},
        {"resourceVersion", &query->resource_version, NULL, NULL},
        {"continue", &query->continue_token, NULL, NULL},
        {"fieldManager", &query->field_manager, NULL, NULL},
        {"fieldValidation", &query->field_validation, NULL, NULL},
        {"propagationPolicy", &query->propagation_policy, NULL, NULL},
        {"includeObject", &query->include_object, NULL, NULL},
        {"container", &query->container, NULL, NULL},
        {"watch", NULL, &query->watch, NULL},
        {"allowWatchBookmarks", NULL, &query->allow_bookmarks, NULL},
        {"sendInitialEvents", NULL, &query->send_initial_events, NULL},
        {"force", NULL, &query->force, NULL},
        {"orphanDependents", NULL, &query->orphan_dependents, NULL},
        {"limit", NULL, NULL, &query->limit},
        {"timeoutSeconds", NULL, NULL, &query->timeout_s},
        {"gracePeriodSeconds", NULL, NULL, &query->grace_period_s},
    };
    if (slice_is(name, "resourceVersionMatch")) {
        /* The handlers of reads check whether it is valid. */
        query->match_text = value;
        query->match = !value.len                        ? KUBE_MATCH_UNSET
                       : slice_is(value, "NotOlderThan") ? KUBE_MATCH_NOT_OLDER
                       : slice_is(value, "Exact")        ? KUBE_MATCH_EXACT
                                                         : KUBE_MATCH_OTHER;
        return true;
    }
    if (slice_is(name, "pretty")) {
        query->pretty_given = value.len > 0;
        query->pretty = is_go_true(value);
        return true;
    }
    if (slice_is(name, "timeout")) {
        query->request_timeout = query->request_timeout.len ? query->request_timeout : value;
        return true;
    }
    if (slice_is(name, "dryRun")) {
        /* The handlers of writes check whether it is valid. */
        bool all = slice_is(value, "All");
        if (query->dry_run_unknown)
            return true;
        query->dry_run = all;
        query->dry_run_unknown = !all;
        query->dry_run_text = value;
        return true;
    }
    for (size_t i = 0; i < COUNT_OF(options); i++) {
        if (!slice_is(name, options[i].name))
            continue;
        if (options[i].truth)
            *options[i].truth = parse_bool(value);
        if (options[i].number)
            return parse_number(value, options[i].number, status);
        if (options[i].text)
            *options[i].text = value;
    }
    return true; /* unknown ones are ignored */
}

enum status kube_query_next(struct arena *arena, struct slice *query, const char *wanted,
                            struct slice *ret_value)
{
    while (query->len) {
        struct slice value = slice_cut(query, '&');
        struct slice name = slice_cut(&value, '=');
        enum status status = kube_percent_decode(arena, name, true, &name);
        if (status == ST_OK && !slice_is(name, wanted))
            continue;
        if (status == ST_OK)
            status = kube_percent_decode(arena, value, true, &value);
        if (status == ST_MALFORMED)
            continue; /* Go ignores such a pair */
        if (status == ST_OK)
            *ret_value = value;
        return status;
    }
    return ST_END;
}

enum status kube_query_get(struct arena *arena, struct slice query, const char *wanted,
                           struct slice *ret_value)
{
    *ret_value = SLICE_EMPTY;
    enum status status = kube_query_next(arena, &query, wanted, ret_value);
    return status == ST_END ? ST_OK : status;
}

bool kube_query_parse(struct arena *arena, struct slice query, struct kube_query *ret_query,
                      struct kube_status *status)
{
    *ret_query = (struct kube_query){.grace_period_s = -1};
    while (query.len) {
        struct slice value = slice_cut(&query, '&');
        struct slice name = slice_cut(&value, '=');
        if (!name.len)
            continue;
        enum status decoded = kube_percent_decode(arena, name, true, &name);
        if (decoded == ST_OK)
            decoded = kube_percent_decode(arena, value, true, &value);
        if (decoded == ST_MALFORMED)
            continue; /* Go ignores such a pair */
        if (decoded != ST_OK)
            return kube_fail_engine(status, decoded);
        ret_query->send_initial_events_given |= slice_is(name, "sendInitialEvents");
        ret_query->orphan_given |= slice_is(name, "orphanDependents");
        ret_query->force_given |= slice_is(name, "force");
        if (!parse_option(name, value, ret_query, status))
            return false;
        if (slice_is(name, "gracePeriodSeconds") && value.len && ret_query->grace_period_s < 0)
            ret_query->grace_period_s = 1; /* a negative period counts as 1, as in Kubernetes */
    }
    if (ret_query->limit < 0)
        ret_query->limit = 0;
    /* Any other text was refused (kube/call/gate.c), unless the request has no deadline. */
    if (!go_duration_read(ret_query->request_timeout, &ret_query->request_timeout_ns))
        ret_query->request_timeout_ns = 0;
    return true;
}

const char *kube_revision_parse(struct slice text, int64_t *ret_revision)
{
    uint64_t value = 0;
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] < '0' || text.ptr[i] > '9')
            return "invalid syntax";
    for (size_t i = 0; i < text.len; i++) {
        uint64_t digit = (uint64_t)(text.ptr[i] - '0');
        if (value > (UINT64_MAX - digit) / 10)
            return "value out of range";
        value = value * 10 + digit;
    }
    /* One less than the maximum, so that the next revision is a number, too. */
    *ret_revision = value < INT64_MAX ? (int64_t)value : INT64_MAX - 1;
    return NULL;
}

/* Event, of both groups. */
#include "kube/types/validate/kinds.h"
#include "kube/types/validate/rules.h"
#include "kube/types/validate/shown.h"

#include <stdio.h>

enum { TEXT_BYTES_MAX = 128, NOTE_BYTES_MAX = 1024 };

/* The names of one group for fields that both have. */
struct names {
    const char *object, *controller, *note;
    const char *shown_controller; /* in errors */
};

static const struct names of_core = {"involvedObject", "reportingComponent", "message",
                                     "reportingComponent"};
static const struct names of_events = {"regarding", "reportingController", "note",
                                       "reportingController"};

static void check_length(struct check *c, const char *name, struct slice text, size_t max)
{
    char why[48];
    snprintf(why, sizeof(why), "can have at most %zu characters", max);
    if (text.len > max)
        bad_text(c, AT(NULL, name), SLICE_EMPTY, why);
}

static void check_short(struct check *c, const struct json_node *object, const char *name)
{
    struct slice text = rule_text(c, object, name);
    if (!text.len)
        bad_required(c, AT(NULL, name), NULL);
    check_length(c, name, text, TEXT_BYTES_MAX);
}

/* Checks an event with the time at which it happened. */
static void check_timed(struct check *c, const struct json_node *object, const struct names *names)
{
    struct slice controller = rule_text(c, object, names->controller);
    if (!controller.len)
        bad_required(c, AT(NULL, names->shown_controller), NULL);
    rule_name(c, AT(NULL, names->shown_controller), controller, label_key_valid);
    check_short(c, object, "reportingInstance");
    check_short(c, object, "action");
    check_short(c, object, "reason");
    check_length(c, "message", rule_text(c, object, names->note), NOTE_BYTES_MAX);
}

static void check_common(struct check *c, const struct json_node *object, const struct names *names)
{
    struct slice namespace = rule_text(c, rule_member(object, "metadata"), "namespace");
    struct slice of = rule_text(c, rule_member(object, names->object), "namespace");
    bool timed = rule_member(object, "eventTime");
    bool fits = of.len ? timed || slice_equal(of, namespace)
                       : rule_one_of(namespace, timed ? "default,kube-system" : "default");
    if (!fits)
        bad_text(c, AT(AT(NULL, "involvedObject"), "namespace"), of,
                 "does not match event.namespace");
    if (timed)
        check_timed(c, object, names);
}

void kube_validate_event(struct check *c, const struct json_node *object,
                         const struct json_node *old)
{
    (void)old;
    check_common(c, object, &of_core);
}

/* -- events.k8s.io -- */

static void check_series(struct check *c, const struct json_node *series)
{
    const struct at *at = AT(NULL, "series");
    if (!series)
        return;
    if (rule_int(series, "count", 0) < 2)
        bad_text(c, AT(at, "count"), SLICE_EMPTY, "should be at least 2");
    if (!rule_member(series, "lastObservedTime"))
        bad_required(c, AT(at, "lastObservedTime"), NULL);
}

static void check_unset(struct check *c, bool is_set, const char *name)
{
    if (is_set)
        bad_text(c, AT(NULL, name), SLICE_EMPTY, "needs to be unset");
}

static void check_new_event(struct check *c, const struct json_node *object)
{
    const struct json_node *source = rule_member(object, "deprecatedSource");
    struct slice type = rule_text(c, object, "type");
    char why[TEXT_BYTES_MAX + 32];
    check_series(c, rule_member(object, "series"));
    if (!rule_member(object, "eventTime"))
        bad_required(c, AT(NULL, "eventTime"), NULL);
    snprintf(why, sizeof(why), "has invalid value: %.*s", (int)size_min(type.len, TEXT_BYTES_MAX),
             (const char *)type.ptr);
    if (!rule_one_of(type, "Normal,Warning"))
        bad_text(c, AT(NULL, "type"), SLICE_EMPTY, why);
    check_unset(c, rule_member(object, "deprecatedFirstTimestamp"), "firstTimestamp");
    check_unset(c, rule_member(object, "deprecatedLastTimestamp"), "lastTimestamp");
    check_unset(c, rule_int(object, "deprecatedCount", 0), "count");
    check_unset(c, rule_text(c, source, "component").len || rule_text(c, source, "host").len,
                "source");
}

SHOWN_TYPE(reference_type, SHOWN_TEXT("Kind", "kind"), SHOWN_TEXT("Namespace", "namespace"),
           SHOWN_TEXT("Name", "name"), SHOWN_TEXT("UID", "uid"),
           SHOWN_TEXT("APIVersion", "apiVersion"), SHOWN_TEXT("ResourceVersion", "resourceVersion"),
           SHOWN_TEXT("FieldPath", "fieldPath"));

static void check_event_update(struct check *c, const struct json_node *object,
                               const struct json_node *old)
{
    if (!rule_same_member(object, old, "series"))
        check_series(c, rule_member(object, "series"));
    if (!rule_same_member(object, old, "regarding"))
        bad_raw(c, AT(NULL, "involvedObject"),
                show_struct(c, rule_member(object, "regarding"), &reference_type),
                "field is immutable");
    rule_fixed(
        c, NULL, object, old,
        "reason,note=message,deprecatedSource=source,deprecatedFirstTimestamp=firstTimestamp,"
        "deprecatedLastTimestamp=lastTimestamp,deprecatedCount=count,reason,type,eventTime,"
        "action,related,reportingController,reportingInstance");
}

void kube_validate_new_event(struct check *c, const struct json_node *object,
                             const struct json_node *old)
{
    check_common(c, object, &of_events);
    if (old)
        check_event_update(c, object, old);
    else
        check_new_event(c, object);
}

/* When the pods of a job count as failed, and when the job has succeeded. */
#include "kube/types/validate/rules.h"
#include "kube/types/validate/workload/job.h"

#include <stdio.h>

enum {
    RULES_MAX = 20,
    PATTERNS_MAX = 20,
    CODES_MAX = 255,
    INDEXES_BYTES_MAX = 64 * 1024,
    SHOWN_MAX = 100,
};

/* -- Failure -- */

static void check_codes(struct check *c, const struct at *at, const struct json_node *list, bool in)
{
    bool ordered = true;
    int64_t last = 0;
    struct seen seen = {0};
    size_t i = 0;
    if (!rule_count(list))
        bad_raw(c, at, "[]", "at least one value is required");
    else if (rule_count(list) > CODES_MAX)
        bad_many(c, at, rule_count(list), CODES_MAX);
    for (const struct json_node *item = rule_first(list); item; item = item->next, i++) {
        int64_t code = rule_int_of(item);
        /* An exit code of 0 is a success, which a rule for failures cannot match. */
        if (in && !code)
            bad_int(c, AT_ITEM(at, i), code, "must not be 0 for the In operator");
        if (!seen_add(c, &seen, rule_text_of(c, item)))
            bad_repeat_int(c, AT_ITEM(at, i), code);
        ordered = ordered && (!i || last <= code);
        last = code;
    }
    if (!ordered)
        bad_node(c, at, list, "must be ordered");
}

static void check_patterns(struct check *c, const struct at *at, const struct json_node *list)
{
    size_t i = 0;
    if (rule_count(list) > PATTERNS_MAX)
        bad_many(c, at, rule_count(list), PATTERNS_MAX);
    for (const struct json_node *item = rule_first(list); item; item = item->next, i++) {
        const struct at *in = AT_ITEM(at, i);
        rule_name(c, AT(in, "type"), rule_text(c, item, "type"), label_key_valid);
        rule_one(c, in, item, "status", NEEDED,
                 WHY("valid values: [\"False\" \"True\" \"Unknown\"]"),
                 CHOICE("False,True,Unknown"));
    }
}

static void check_failure_rule(struct check *c, const struct at *at, const struct json_node *rule,
                               const struct json_node *spec, const struct seen *containers)
{
    const struct json_node *codes = rule_member(rule, "onExitCodes");
    const struct json_node *patterns = rule_filled(rule, "onPodConditions");
    struct slice action = rule_text(c, rule, "action");
    bool of_index = slice_is(action, "FailIndex");
    if (!action.len)
        bad_required(c, AT(at, "action"),
                     "valid values: [\"Count\" \"FailIndex\" \"FailJob\" \"Ignore\"]");
    else if (of_index && !rule_member(spec, "backoffLimitPerIndex"))
        bad_text(c, AT(at, "action"), action, "requires the backoffLimitPerIndex to be set");
    else
        rule_choice(c, AT(at, "action"), action, "Count,FailIndex,FailJob,Ignore");
    if (codes) {
        const struct at *in = AT(at, "onExitCodes");
        struct slice op = rule_text(c, codes, "operator"),
                     name = rule_text(c, codes, "containerName");
        rule_one(c, in, codes, "operator", NEEDED, WHY("valid values: [\"In\" \"NotIn\"]"),
                 CHOICE("In,NotIn"));
        if (rule_member(codes, "containerName") && !seen_has(containers, name))
            bad_text(c, AT(in, "containerName"), name,
                     "must be one of the container or initContainer names in the pod template");
        check_codes(c, AT(in, "values"), rule_member(codes, "values"), slice_is(op, "In"));
    }
    check_patterns(c, AT(at, "onPodConditions"), patterns);
    /* A rule looks either at the exit codes of containers or at the conditions of the pod. */
    if (codes && patterns)
        bad_omitted(c, at, "specifying both OnExitCodes and OnPodConditions is not supported");
    if (!codes && !patterns)
        bad_omitted(c, at, "specifying one of OnExitCodes and OnPodConditions is required");
}

static void add_names(struct check *c, const struct json_node *containers, struct seen *names)
{
    for (const struct json_node *item = rule_first(containers); item; item = item->next)
        seen_add(c, names, rule_text(c, item, "name"));
}

void rule_failure_policy(struct check *c, const struct at *at, const struct json_node *spec)
{
    const struct json_node *rules = rule_member(rule_member(spec, "podFailurePolicy"), "rules");
    const struct at *list = AT(at, "rules");
    struct seen containers = {0};
    size_t i = 0;
    if (rule_count(rules) > RULES_MAX)
        bad_many(c, list, rule_count(rules), RULES_MAX);
    add_names(c, json_node_path(spec, "template.spec.containers"), &containers);
    add_names(c, json_node_path(spec, "template.spec.initContainers"), &containers);
    for (const struct json_node *rule = rule_first(rules); rule; rule = rule->next)
        check_failure_rule(c, AT_ITEM(list, i++), rule, spec, &containers);
}

/* -- Success -- */

/* "3", "+3": as Go's Atoi. */
static bool read_index(struct slice text, int64_t *ret_index)
{
    uint64_t number;
    struct slice digits = text;
    bool negative = text.len && text.ptr[0] == '-';
    if (negative || (text.len && text.ptr[0] == '+'))
        digits = slice_sub(text, 1, text.len - 1);
    if (!slice_decimal(digits, &number))
        return false;
    *ret_index = negative ? -(int64_t)number : (int64_t)number;
    return true;
}

enum { INDEX_WHY_BYTES = 3 * SHOWN_MAX };

static bool read_bound(struct slice text, int64_t completions, int64_t *ret_index,
                       char why[INDEX_WHY_BYTES])
{
    bool number = read_index(text, ret_index);
    if (number && *ret_index < completions)
        return true;
    snprintf(why, INDEX_WHY_BYTES, "%s: \"%.*s\"",
             number ? "too large index" : "cannot convert string to integer for index",
             (int)size_min(text.len, SHOWN_MAX), (const char *)text.ptr);
    return false;
}

static bool is_increasing(int64_t last, int64_t next, char why[INDEX_WHY_BYTES])
{
    if (last < next)
        return true;
    snprintf(why, INDEX_WHY_BYTES, "non-increasing order, previous: %lld, current: %lld",
             (long long)last, (long long)next);
    return false;
}

static bool read_interval(struct slice text, int64_t completions, int64_t *ret_from,
                          int64_t *ret_to, char why[INDEX_WHY_BYTES])
{
    struct slice end = text, begin = slice_cut(&end, '-');
    bool two = begin.len < text.len;
    /* "1-2-3" */
    if (two && end.len && memchr(end.ptr, '-', end.len)) {
        snprintf(why, INDEX_WHY_BYTES,
                 "the fragment \"%.*s\" violates the requirement that an index interval can have "
                 "at most two parts separated by '-'",
                 (int)size_min(text.len, SHOWN_MAX), (const char *)text.ptr);
        return false;
    }
    if (!read_bound(begin, completions, ret_from, why))
        return false;
    *ret_to = *ret_from;
    return !two ||
           (read_bound(end, completions, ret_to, why) && is_increasing(*ret_from, *ret_to, why));
}

/* -1: `why` has the reason. */
static int64_t count_indexes(struct slice text, int64_t completions, char why[INDEX_WHY_BYTES])
{
    int64_t total = 0, last = -1, from, to;
    bool more = text.len, first = true;
    while (more) {
        const uint8_t *comma = memchr(text.ptr, ',', text.len);
        struct slice part = slice_cut(&text, ',');
        if (!read_interval(part, completions, &from, &to, why) ||
            (!first && !is_increasing(last, from, why)))
            return -1;
        total += to - from + 1;
        last = to;
        first = false;
        more = comma;
        /* After a comma at the end the text is empty but not missing, and an empty part is an
         * error, as in Go. */
        if (more && !text.len)
            text = slice_of("", 0);
    }
    return total;
}

static void check_indexes(struct check *c, const struct at *at, struct slice text,
                          int64_t completions, int64_t *ret_total)
{
    char why[INDEX_WHY_BYTES] = "", whole[INDEX_WHY_BYTES + 48];
    if (text.len > INDEXES_BYTES_MAX)
        bad_long(c, at, INDEXES_BYTES_MAX);
    int64_t total = count_indexes(text, completions, why);
    if (total < 0) {
        snprintf(whole, sizeof(whole), "error parsing succeededIndexes: %s", why);
        bad_text(c, at, text, whole);
    }
    *ret_total = total < 0 ? 0 : total;
}

static void check_count(struct check *c, const struct at *at, int64_t count, int64_t most,
                        const char *what)
{
    char why[128];
    snprintf(why, sizeof(why), "must be less than or equal to %lld (the number of %s)",
             (long long)most, what);
    if (count > most)
        bad_int(c, at, count, why);
}

static void check_success_rule(struct check *c, const struct at *at, const struct json_node *rule,
                               int64_t completions)
{
    const struct json_node *count = rule_member(rule, "succeededCount");
    const struct json_node *indexes = rule_member(rule, "succeededIndexes");
    const struct at *of_count = AT(at, "succeededCount");
    int64_t total = 0;
    if (!count && !indexes)
        bad_required(c, at, "at least one of succeededCount or succeededIndexes must be specified");
    if (indexes)
        check_indexes(c, AT(at, "succeededIndexes"), rule_text_of(c, indexes), completions, &total);
    /* Without a count, all of the indexes have to succeed. */
    if (!count)
        return;
    rule_not_negative(c, of_count, rule_int_of(count));
    check_count(c, of_count, rule_int_of(count), completions, "specified completions");
    if (indexes)
        check_count(c, of_count, rule_int_of(count), total,
                    "indexes in the specified succeededIndexes field");
}

void rule_success_policy(struct check *c, const struct at *at, const struct json_node *spec)
{
    const struct json_node *rules = rule_member(rule_member(spec, "successPolicy"), "rules");
    const struct at *list = AT(at, "rules");
    size_t i = 0;
    if (!rule_count(rules))
        bad_required(c, list,
                     "at least one rules must be specified when the successPolicy is specified");
    if (rule_count(rules) > RULES_MAX)
        bad_many(c, list, rule_count(rules), RULES_MAX);
    for (const struct json_node *rule = rule_first(rules); rule; rule = rule->next)
        check_success_rule(c, AT_ITEM(list, i++), rule, rule_int(spec, "completions", 1));
}

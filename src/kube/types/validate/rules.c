#include "kube/types/validate/rules.h"

#include <stdio.h>

static bool is_nothing(const struct json_node *node)
{
    if (!node)
        return true;
    switch (node->type) {
    case JSON_TYPE_STRING:
        return !node->text.len;
    case JSON_TYPE_NUMBER:
        return !rule_int_of(node);
    case JSON_TYPE_BOOL:
        return !node->truth;
    default:
        return !node->first;
    }
}

static void apply_one(struct check *c, const struct at *at, const struct json_node *node,
                      const struct rule *rule)
{
    if (rule->forbidden)
        bad_forbidden(c, at, rule->forbidden);
    if (rule->name)
        rule_name(c, at, rule_text_of(c, node), rule->name);
    if (rule->choices)
        rule_choice(c, at, rule_text_of(c, node), rule->choices);
    if (rule->text)
        rule->text(c, at, rule_text_of(c, node));
    if (rule->number)
        rule->number(c, at, rule_int_of(node));
    if (rule->outside && (rule_int_of(node) < rule->low || rule_int_of(node) > rule->high))
        bad_int(c, at, rule_int_of(node), rule->outside);
    if (rule->part)
        rule->part(c, at, node);
    rule_apply(c, at, node, rule->rows, rule->count);
}

static void apply_each(struct check *c, const struct at *at, const struct json_node *list,
                       const struct rule *rule)
{
    struct seen seen = {0};
    size_t i = 0;
    for (const struct json_node *item = rule_first(list); item; item = item->next, i++) {
        const struct at *in = rule->when == EACH_AT ? at : AT_ITEM(at, i);
        bool whole = rule->unique && !*rule->unique;
        apply_one(c, in, item, rule);
        if (!rule->unique)
            continue;
        struct slice key = whole ? rule_text_of(c, item) : rule_text(c, item, rule->unique);
        if (!seen_add(c, &seen, key))
            bad_repeat(c, whole ? in : AT(in, rule->unique), key);
    }
}

void rule_apply(struct check *c, const struct at *at, const struct json_node *object,
                const struct rule *rules, size_t count)
{
    for (const struct rule *rule = rules; rule < rules + count; rule++) {
        const struct json_node *node = rule->field ? rule_member(object, rule->field) : object;
        const struct at *in = AT(at, rule->shown ? rule->shown : rule->field);
        bool needed = rule->when == NEEDED || rule->when == EACH_NEEDED;
        if (!rule->field)
            in = at;
        if (rule->when == IF_SET && !node)
            continue;
        if ((needed || rule->when == IF_SOME) && is_nothing(node)) {
            if (needed)
                bad_required(c, in, rule->why);
            continue;
        }
        if (rule->when >= EACH)
            apply_each(c, in, node, rule);
        else
            apply_one(c, in, node, rule);
    }
}

void rule_fixed(struct check *c, const struct at *at, const struct json_node *object,
                const struct json_node *old, const char *members)
{
    struct slice rest = slice_from_text(members);
    while (rest.len) {
        char name[128];
        struct slice shown = slice_cut(&rest, ','), member = slice_cut(&shown, '=');
        snprintf(name, sizeof(name), "%.*s", SLICE_ARGS(shown.len ? shown : member));
        const struct json_node *is = json_node_member(object, member);
        rule_immutable(c, AT(at, name), json_node_is_set(is) ? is : NULL,
                       json_node_member(old, member));
    }
}

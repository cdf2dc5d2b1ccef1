#include "kube/custom/rules/tree.h"

#include "kube/custom/rules/shape.h"

struct tree_maker {
    struct arena *arena;
    const struct rule_set *set;
    struct rule_shapes shapes;
};

static enum status make(struct tree_maker *m, const struct schema *schema, bool resource,
                        const struct rule_node **ret_node);

static enum status make_branches(struct tree_maker *m, const struct schema *schema,
                                 struct rule_node *node)
{
    struct rule_branch *branches = NULL;
    for (uint32_t i = 0; i < schema->property_count; i++) {
        const struct schema_property *property = &schema->properties[i];
        const struct rule_node *below;
        TRY(make(m, property->schema, false, &below));
        if (!below)
            continue;
        if (!branches)
            branches = arena_calloc(m->arena, schema->property_count - i, sizeof(*branches));
        if (!branches)
            return ST_NOMEM;
        branches[node->property_count++] = (struct rule_branch){property->name, below};
    }
    node->properties = branches;
    return ST_OK;
}

static enum status add_programs(struct tree_maker *m, struct rule_node *node, bool resource)
{
    node->programs = rule_set_find(m->set, node->schema);
    if (!node->programs)
        return ST_OK;
    for (size_t i = 0; i < node->programs->count; i++)
        node->uses_old |= node->programs->list[i].uses_old;
    return rule_shapes_get(&m->shapes, node->schema, resource, &node->shape);
}

static enum status make(struct tree_maker *m, const struct schema *schema, bool resource,
                        const struct rule_node **ret_node)
{
    struct rule_node node = {.schema = schema};
    *ret_node = NULL;
    if (schema->has_rules)
        TRY(add_programs(m, &node, resource));
    TRY(make_branches(m, schema, &node));
    if (schema->items)
        TRY(make(m, schema->items, false, &node.items));
    if (schema->additional)
        TRY(make(m, schema->additional, false, &node.additional));
    if (!node.programs && !node.property_count && !node.items && !node.additional)
        return ST_OK;
    struct rule_node *kept = arena_alloc(m->arena, sizeof(*kept));
    if (!kept)
        return ST_NOMEM;
    *kept = node;
    *ret_node = kept;
    return ST_OK;
}

enum status rule_tree_new(struct arena *arena, const struct schema *schema, bool resource,
                          const struct rule_node **ret_root)
{
    struct tree_maker m = {.arena = arena};
    TRY(rule_set_new(arena, schema, &m.set));
    rule_shapes_init(&m.shapes, arena);
    enum status status = make(&m, schema, resource, ret_root);
    rule_shapes_fini(&m.shapes);
    return status;
}

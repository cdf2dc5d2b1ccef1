/*
 * What the evaluation of an expression costs, in microseconds: `ninja cel_bench && unit/cel_bench`.
 * Prints one JSON object for `make bench`; bench/clients/celgo measures the same expressions with
 * cel-go, with the same variables and also with the cost counted.
 */
#include "cel/eval/program.h"
#include "cel/syntax/parser.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum {
    ROUNDS = 50,
    ITEMS = 1000,
    ARENA_FIRST_BYTES = 64 << 10,
    ARENA_BYTES_MAX = 64 << 20,
};

static const struct sample {
    const char *name, *text;
    unsigned times;
} samples[] = {
    {"rule", "self.replicas <= self.max", 2000},
    {"all", "self.items.all(x, x >= 0)", 20},
    {"map", "self.items.map(x, x + 1).size() == 1000", 20},
};

static const struct cel_variable variables[] = {{SLICE_LITERAL("self"), &cel_type_DYN}};
static const struct cel_env env = {.variables = variables, .variable_count = COUNT_OF(variables)};

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void must(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "cel_bench: %s failed\n", what);
    exit(1);
}

/* {"replicas": 3, "max": 10, "items": [0, 1, 2, …]} */
static struct cel_value read_self(struct arena *arena)
{
    AUTO(buf_fini) struct buf text = {0};
    struct json_node *root;
    struct error error;
    char number[32];
    must(buf_append_text(&text, "{\"replicas\":3,\"max\":10,\"items\":[") == ST_OK, "writing");
    for (int i = 0; i < ITEMS; i++) {
        snprintf(number, sizeof(number), "%s%d", i ? "," : "", i);
        must(buf_append_text(&text, number) == ST_OK, "writing");
    }
    must(buf_append_text(&text, "]}") == ST_OK, "writing");
    uint8_t *copy = arena_alloc(arena, text.len);
    must(copy, "allocating");
    slice_copy(copy, buf_slice(&text));
    must(json_tree_read(arena, slice_of(copy, text.len), &root, &error) == ST_OK, "reading");
    struct cel_work work = {.arena = arena, .steps_left = INT64_MAX};
    return cel_of_json(&work, root);
}

static const struct cel_program *compile(struct arena *arena, const char *text)
{
    struct cel_errors errors;
    struct cel_expr *root;
    const struct cel_program *program;
    cel_errors_init(&errors, arena, slice_from_text(text));
    must(cel_parse(&errors, &root) == ST_OK && cel_check(&env, &errors, root) == ST_OK &&
             cel_program_new(&env, &errors, root, &program) == ST_OK,
         text);
    return program;
}

static double evaluate_ns(const struct cel_program *program, struct cel_value self, unsigned times)
{
    static uint8_t first[ARENA_FIRST_BYTES];
    double start = now_ns();
    for (unsigned i = 0; i < times; i++) {
        struct arena arena;
        struct cel_budget budget = {.cost_max = 1000000};
        arena_init(&arena, first, sizeof(first), ARENA_BYTES_MAX);
        must(cel_is_true(cel_eval(program, &self, &arena, &budget)), "an expression");
        arena_fini(&arena);
    }
    return (now_ns() - start) / times;
}

/* The best of many short rounds: some of them run undisturbed even on a busy machine. */
int main(void)
{
    struct arena arena;
    arena_init(&arena, NULL, 0, ARENA_BYTES_MAX);
    struct cel_value self = read_self(&arena);
    printf("{");
    for (size_t i = 0; i < COUNT_OF(samples); i++) {
        const struct cel_program *program = compile(&arena, samples[i].text);
        double best = 1e18;
        for (unsigned round = 0; round < ROUNDS; round++) {
            double got = evaluate_ns(program, self, samples[i].times);
            best = got < best ? got : best;
        }
        printf("%s\"%s\": %.3f", i ? ", " : "", samples[i].name, best / 1000);
    }
    printf("}\n");
    arena_fini(&arena);
    return 0;
}

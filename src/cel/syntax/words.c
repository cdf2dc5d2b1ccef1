#include "cel/syntax/words.h"

#include <stdio.h>

/* Words that can follow a parenthesis or bracket within the same expression. */
#define CONTINUES_EXPR                                                                        \
    (BIT(EQUALS) | BIT(NOT_EQUALS) | BIT(IN) | BIT(LESS) | BIT(LESS_EQUALS) |                 \
     BIT(GREATER_EQUALS) | BIT(GREATER) | BIT(AND) | BIT(OR) | BIT(LEFT_BRACKET) | BIT(DOT) | \
     BIT(MINUS) | BIT(QUESTION) | BIT(PLUS) | BIT(TIMES) | BIT(DIVIDE) | BIT(MODULO))

void cel_words_init(struct cel_words *words, struct cel_errors *errors)
{
    *words = (struct cel_words){.errors = errors, .follow = BIT(END)};
    cel_lexer_init(&words->lexer, errors->source, errors);
    words->token = cel_lexer_next(&words->lexer);
    words->ahead = cel_lexer_next(&words->lexer);
}

void cel_words_advance(struct cel_words *words)
{
    words->token = words->ahead;
    words->ahead = cel_lexer_next(&words->lexer);
}

bool cel_words_take(struct cel_words *words, enum cel_token_kind kind)
{
    if (words->failed || words->token.kind != kind)
        return false;
    cel_words_advance(words);
    return true;
}

/* "Syntax error: mismatched input 'x' expecting {')', ','}" */
static void report(struct cel_words *words, const char *what, uint64_t expected)
{
    char names[512];
    size_t used = 0;
    const char *separator = "";
    for (enum cel_token_kind kind = 0; kind < CEL_TOKEN_KINDS; kind++)
        if (cel_word_in(kind, expected)) {
            int len = snprintf(names + used, sizeof(names) - used, "%s%s", separator,
                               cel_token_name(kind));
            assert(len > 0 && (size_t)len < sizeof(names) - used);
            used += (size_t)len;
            separator = ", ";
        }
    bool several = (expected & (expected - 1)) != 0;
    cel_error_add(words->errors, words->token.offset,
                  "Syntax error: %s input '%.*s' expecting %s%s%s", what,
                  SLICE_ARGS(words->token.text), several ? "{" : "", names, several ? "}" : "");
}

void cel_words_fail(struct cel_words *words, uint64_t expected)
{
    if (!words->failed)
        report(words, "mismatched", expected);
    words->failed = true;
}

void cel_words_fail_superfluous(struct cel_words *words, uint64_t expected)
{
    if (!words->failed)
        report(words, "extraneous", expected);
    words->failed = true;
}

void cel_words_fail_at(struct cel_words *words, uint32_t begin)
{
    bool at_end = words->token.kind == CEL_TOKEN_END;
    size_t end = words->token.offset + (at_end ? 0 : words->token.text.len);
    char input[CEL_ERROR_BYTES_MAX];
    size_t used = 0;
    for (size_t i = begin; i < end && used + 2 < sizeof(input); i++) {
        uint8_t c = words->errors->source.ptr[i];
        char letter = c == '\n' ? 'n' : c == '\r' ? 'r' : c == '\t' ? 't' : 0;
        if (letter)
            input[used++] = '\\';
        input[used++] = letter ? letter : (char)c;
    }
    if (!words->failed)
        cel_error_add(words->errors, words->token.offset,
                      "Syntax error: no viable alternative at input '%.*s'", (int)used, input);
    words->failed = true;
}

bool cel_words_find_expr(struct cel_words *words)
{
    uint64_t expected = BEGINS_EXPR | words->also_expected;
    words->also_expected = 0;
    if (words->failed)
        return false;
    if (cel_word_in(words->token.kind, BEGINS_EXPR))
        return true;
    if (!cel_word_in(words->ahead.kind, expected)) {
        cel_words_fail(words, expected);
        return false;
    }
    report(words, "extraneous", expected);
    cel_words_advance(words);
    words->failed = !cel_word_in(words->token.kind, BEGINS_EXPR);
    return !words->failed;
}

bool cel_words_expect(struct cel_words *words, enum cel_token_kind kind, uint64_t also_expected)
{
    if (words->failed || cel_words_take(words, kind))
        return !words->failed;
    uint64_t expected = UINT64_C(1) << kind | also_expected;
    if (cel_word_in(words->ahead.kind, expected) && words->token.kind != CEL_TOKEN_END) {
        report(words, "extraneous", expected);
        cel_words_advance(words);
        words->failed = !cel_words_take(words, kind);
        return !words->failed;
    }
    uint64_t behind = kind == CEL_TOKEN_COLON ? BEGINS_EXPR : CONTINUES_EXPR | words->follow;
    if (cel_word_in(words->token.kind, behind) && !also_expected && kind != CEL_TOKEN_END) {
        cel_error_add(words->errors, words->token.offset, "Syntax error: missing %s at '%.*s'",
                      cel_token_name(kind), SLICE_ARGS(words->token.text));
        return true;
    }
    cel_words_fail(words, expected);
    return false;
}

/*
 * The words of an expression as the parser sees them: the current one, the one behind it, and the
 * errors for a word that does not fit. The errors are those of cel-go's generated parser, which
 * skips one superfluous word, or assumes a missing one, and continues.
 */
#ifndef VIGIL_CEL_SYNTAX_WORDS_H
#define VIGIL_CEL_SYNTAX_WORDS_H

#include "cel/syntax/token.h"

/* Sets of kinds of words. */
#define BIT(kind) (UINT64_C(1) << CEL_TOKEN_##kind)
_Static_assert(CEL_TOKEN_KINDS <= 64, "a set of words has 64 bits");

#define BEGINS_EXPR                                                                             \
    (BIT(LEFT_BRACKET) | BIT(LEFT_BRACE) | BIT(LEFT_PAREN) | BIT(DOT) | BIT(MINUS) | BIT(NOT) | \
     BIT(TRUE) | BIT(FALSE) | BIT(NULL) | BIT(DOUBLE) | BIT(INT) | BIT(UINT) | BIT(STRING) |    \
     BIT(BYTES) | BIT(IDENTIFIER))
#define NAMES (BIT(IDENTIFIER) | BIT(ESCAPED_IDENTIFIER))

static inline bool cel_word_in(enum cel_token_kind kind, uint64_t set)
{
    return set >> kind & 1;
}

struct cel_words {
    struct cel_lexer lexer;
    struct cel_errors *errors;
    struct cel_token token, ahead;
    bool failed;            /* after a syntax error, or without memory: nothing is taken any more */
    uint64_t follow;        /* words that may follow the current expression as a whole */
    uint64_t also_expected; /* words that may be there instead of the next expression */
};

/* The words of errors->source. */
void cel_words_init(struct cel_words *words, struct cel_errors *errors);

void cel_words_advance(struct cel_words *words);

/* Advances if the current word is one of this kind. */
bool cel_words_take(struct cel_words *words, enum cel_token_kind kind);

/* True: the current word begins an expression. One superfluous word before it is reported and
 * skipped. */
MUST_CHECK
bool cel_words_find_expr(struct cel_words *words);

/* Takes a word that must follow. One superfluous word before it is reported and skipped; if what
 * follows it is there, it is reported as missing and assumed. */
MUST_CHECK
bool cel_words_expect(struct cel_words *words, enum cel_token_kind kind, uint64_t also_expected);

/* Reports that the current word is not one of these. */
void cel_words_fail(struct cel_words *words, uint64_t expected);
/* The same for a word that is one too many. */
void cel_words_fail_superfluous(struct cel_words *words, uint64_t expected);
/* Reports that the current word cannot follow the text that begins at an offset. */
void cel_words_fail_at(struct cel_words *words, uint32_t begin);

#endif

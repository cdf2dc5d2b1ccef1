/*
 * The words of an expression, one at a time. Spaces and comments are skipped. Text that cannot be a
 * word ("a & b") is reported as cel-go's lexer does, and skipped as well.
 */
#ifndef VIGIL_CEL_SYNTAX_TOKEN_H
#define VIGIL_CEL_SYNTAX_TOKEN_H

#include "cel/errors.h"

/* How error messages call them, in the order of the grammar, in which they list what they expect.
 */
#define CEL_TOKENS(X)           \
    X(END, "<EOF>")             \
    X(EQUALS, "'=='")           \
    X(NOT_EQUALS, "'!='")       \
    X(IN, "'in'")               \
    X(LESS, "'<'")              \
    X(LESS_EQUALS, "'<='")      \
    X(GREATER_EQUALS, "'>='")   \
    X(GREATER, "'>'")           \
    X(AND, "'&&'")              \
    X(OR, "'||'")               \
    X(LEFT_BRACKET, "'['")      \
    X(RIGHT_BRACKET, "']'")     \
    X(LEFT_BRACE, "'{'")        \
    X(RIGHT_BRACE, "'}'")       \
    X(LEFT_PAREN, "'('")        \
    X(RIGHT_PAREN, "')'")       \
    X(DOT, "'.'")               \
    X(COMMA, "','")             \
    X(MINUS, "'-'")             \
    X(NOT, "'!'")               \
    X(QUESTION, "'?'")          \
    X(COLON, "':'")             \
    X(PLUS, "'+'")              \
    X(TIMES, "'*'")             \
    X(DIVIDE, "'/'")            \
    X(MODULO, "'%'")            \
    X(TRUE, "'true'")           \
    X(FALSE, "'false'")         \
    X(NULL, "'null'")           \
    X(DOUBLE, "NUM_FLOAT")      \
    X(INT, "NUM_INT")           \
    X(UINT, "NUM_UINT")         \
    X(STRING, "STRING")         \
    X(BYTES, "BYTES")           \
    X(IDENTIFIER, "IDENTIFIER") \
    X(ESCAPED_IDENTIFIER, "ESC_IDENTIFIER")

enum cel_token_kind {
#define X(name, text) CEL_TOKEN_##name,
    CEL_TOKENS(X)
#undef X
        CEL_TOKEN_KINDS
};

struct cel_token {
    enum cel_token_kind kind;
    uint32_t offset;
    struct slice text; /* with quotes and prefixes; "<EOF>" at the end */
};

struct cel_lexer {
    struct slice source;
    uint32_t at; /* where the next token is looked for */
    struct cel_errors *errors;
};

/* The source has less than 2^32 bytes. */
void cel_lexer_init(struct cel_lexer *lexer, struct slice source, struct cel_errors *errors);

/* CEL_TOKEN_END at the end, and from then on. */
struct cel_token cel_lexer_next(struct cel_lexer *lexer);

/* "'=='" or "IDENTIFIER". */
const char *cel_token_name(enum cel_token_kind kind);

#endif

/*
 * The selectors of a list or watch as a SubjectAccessReview has them: lists of requirements, made
 * by the rules of kube-apiserver. What cannot be expressed is left out, and then the question is a
 * broader one: it asks for more than the client wants.
 */
#ifndef VIGIL_TIER_RIGHTS_SELECTORS_H
#define VIGIL_TIER_RIGHTS_SELECTORS_H

#include "base/memory/arena.h"
#include "codec/json/writer.h"

/* Write a member "labelSelector" or "fieldSelector" of an object, or nothing if there is no
 * requirement. Without memory the arena has run out, or the writer has failed. */
void tier_write_label_selector(struct json_writer *writer, struct arena *arena, struct slice text);
void tier_write_field_selector(struct json_writer *writer, struct arena *arena, struct slice text);

/* The name that a field selector requires (metadata.name=x), if it can be a part of a path; empty:
 * none. */
struct slice tier_selected_name(struct arena *arena, struct slice text);

#endif

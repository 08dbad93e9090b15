/* schema_write.c - a schema as indented JSON. A column without more than a kind takes one line, so
 * that people can read and edit the file. */
#include <stdio.h>

#include "base/formats/json_write.h"
#include "base/str.h"
#include "tables/schema/cell_value.h"
#include "tables/schema/schema.h"

static void out_text(pith__out *o, const char *text) { pith__out_put(o, text, strlen(text)); }

static void out_string(pith__out *o, pith_str s) {
    pith__json_out json = { o, false };
    pith__json_put_string(&json, s);
}

/* `, "name": "value"`, unless the value is empty. */
static void out_member(pith__out *o, const char *before, const char *name, pith_str value) {
    if (!value.size) return;
    out_text(o, before);
    out_text(o, "\"");
    out_text(o, name);
    out_text(o, "\": ");
    out_string(o, value);
}

static void out_names(pith__out *o, const pith__name_list *names) {
    if (names->count == 1) {
        out_string(o, names->items[0]);
        return;
    }
    for (size_t i = 0; i < names->count; i++) {
        out_text(o, i ? ", " : "[");
        out_string(o, names->items[i]);
    }
    out_text(o, "]");
}

static bool link_is_plain(pith_str name) {
    for (size_t i = 0; i < name.size; i++)
        if (name.data[i] == '.' || name.data[i] == '"' || name.data[i] == '\\' ||
            (unsigned char)name.data[i] < ' ')
            return false;
    return true;
}

/* The first link that this column alone makes and that "table.column" can name, or NULL. */
static const pith__link_schema *single_link(const pith__table_schema *t, pith_str column) {
    for (size_t i = 0; i < t->link_count; i++)
        if (t->links[i].columns.count == 1 && pith__str_eq(t->links[i].columns.items[0], column) &&
            link_is_plain(t->links[i].parent) && link_is_plain(t->links[i].parent_columns.items[0]))
            return &t->links[i];
    return NULL;
}

static void out_column(pith__out *o, const pith__table_schema *t, const pith__column_schema *c) {
    const pith__link_schema *link = single_link(t, c->name);
    char number[40];
    out_string(o, c->name);
    out_text(o, ": { \"stype\": \"");
    out_text(o, pith__stype_names[c->stype]);
    out_text(o, "\"");
    if (link) {
        out_text(o, ", \"foreign_key\": \"");
        pith__out_put(o, link->parent.data, link->parent.size);
        out_text(o, ".");
        pith__out_put(o, link->parent_columns.items[0].data, link->parent_columns.items[0].size);
        out_text(o, "\"");
    }
    if (c->transform)
        out_member(o, ", ", "transform", pith__str_of(pith__transform_names[c->transform]));
    if (c->format) out_member(o, ", ", "format", pith__str_of(pith__time_format_names[c->format]));
    if (c->known_at.set) {
        out_text(o, ", \"known_at\": { ");
        out_member(o, "", "column", c->known_at.column);
        snprintf(number, sizeof number, "%s\"delay_seconds\": %lld",
                 c->known_at.column.size ? ", " : "", (long long)c->known_at.delay);
        out_text(o, number);
        out_text(o, " }");
    }
    out_member(o, ", ", "description", c->description);
    out_text(o, " }");
}

static void out_links(pith__out *o, const pith__table_schema *t) {
    bool any = false;
    for (size_t i = 0; i < t->link_count; i++) {
        const pith__link_schema *link = &t->links[i];
        if (link == single_link(t, link->columns.items[0])) continue;
        out_text(o, any ? ",\n        { \"columns\": "
                        : ",\n      \"foreign_keys\": [\n        { \"columns\": ");
        any = true;
        out_names(o, &link->columns);
        out_member(o, ", ", "table", link->parent);
        out_text(o, ", \"references\": ");
        out_names(o, &link->parent_columns);
        out_text(o, " }");
    }
    if (any) out_text(o, "\n      ]");
}

static void out_table(pith__out *o, const pith__table_schema *t) {
    out_string(o, t->name);
    out_text(o, ": {\n      \"file\": ");
    out_string(o, t->file);
    out_member(o, ",\n      ", "description", t->description);
    if (t->primary_key.count) {
        out_text(o, ",\n      \"primary_key\": ");
        out_names(o, &t->primary_key);
    }
    out_member(o, ",\n      ", "temporal_column", t->temporal_column);
    if (t->always) out_member(o, ",\n      ", "known", PITH_STR("always"));
    out_text(o, ",\n      \"columns\": {");
    for (size_t i = 0; i < t->column_count; i++) {
        out_text(o, i ? ",\n        " : "\n        ");
        out_column(o, t, &t->columns[i]);
    }
    out_text(o, "\n      }");
    out_links(o, t);
    out_text(o, "\n    }");
}

void pith__schema_write(const pith__schema *schema, pith__out *o) {
    out_text(o, "{\n  \"name\": ");
    out_string(o, schema->name);
    out_text(o, ",\n  \"tables\": {");
    for (size_t i = 0; i < schema->table_count; i++) {
        out_text(o, i ? ",\n    " : "\n    ");
        out_table(o, &schema->tables[i]);
    }
    out_text(o, "\n  },\n  \"tasks\": {}\n}\n");
}

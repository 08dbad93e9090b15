/* database_diagram.c - see database_diagram.h.
 *
 * A graph in layers, as Sugiyama, Tagawa and Toda describe (1981): cycles are broken, each table
 * gets the layer after those of its parents, links that cross layers get a bend in each, and the
 * order within layers follows the mean place of the neighbours. */
#include "cli/drawing/database_diagram.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/cli.h"
#include "cli/drawing/svg_chart.h"

enum { MOST_TABLES = 400, MOST_LINKS = 1000, SHOWN_COLUMNS = 12, SHOWN_LETTERS = 26, SWEEPS = 8 };
enum {
    BOX_WIDTH = 250,
    BOX_HEAD = 30,
    BOX_LINE = 18,
    BOX_FOOT = 8,
    GAP_X = 90,
    GAP_Y = 24,
    MARGIN = 20,
    TITLE = 44
};

typedef struct diagram_link {
    const json_t *link;
    size_t child, parent; /* tables */
    bool turned;          /* closes a cycle: drawn from left to right */
    size_t line;          /* of the child's box */
    size_t *bends, count; /* nodes between left and right, in this order */
} diagram_link;

/* A table, or a bend of a link. */
typedef struct diagram_node {
    const json_t *table; /* NULL: a bend */
    size_t layer, links; /* links: that begin here */
    double x, y, height, wish;
} diagram_node;

typedef struct diagram {
    diagram_node *nodes; /* tables come first */
    diagram_link *links;
    size_t tables, link_count, node_count, layers;
} diagram;

/* ---- layers ---- */

static const char *diagram_text(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static size_t diagram_find(const diagram *d, const char *table) {
    for (size_t i = 0; i < d->tables; i++)
        if (!strcmp(diagram_text(d->nodes[i].table, "name"), table)) return i;
    return d->tables;
}

/* Turns links that lead back to a table on the way. state: 0 not seen, 1 on the way, 2 done. Depth:
 * MOST_TABLES. */
static void diagram_break_cycles(diagram *d, size_t table, char *state) {
    state[table] = 1;
    for (size_t i = 0; i < d->link_count; i++) {
        diagram_link *link = &d->links[i];
        if (link->child != table || link->parent == table) continue;
        if (state[link->parent] == 1)
            link->turned = true;
        else if (!state[link->parent])
            diagram_break_cycles(d, link->parent, state);
    }
    state[table] = 2;
}

static size_t diagram_left(const diagram_link *link) {
    return link->turned ? link->child : link->parent;
}
static size_t diagram_right(const diagram_link *link) {
    return link->turned ? link->parent : link->child;
}

static void diagram_layer(diagram *d) {
    char *state = grow(NULL, d->tables + 1);
    memset(state, 0, d->tables + 1);
    for (size_t i = 0; i < d->tables; i++)
        if (!state[i]) diagram_break_cycles(d, i, state);
    free(state);
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t i = 0; i < d->link_count; i++) {
            const diagram_link *link = &d->links[i];
            const size_t least = d->nodes[diagram_left(link)].layer + 1;
            diagram_node *right = &d->nodes[diagram_right(link)];
            if (link->child == link->parent || right->layer >= least) continue;
            right->layer = least;
            changed = true;
        }
    }
    for (size_t i = 0; i < d->tables; i++)
        if (d->nodes[i].layer >= d->layers) d->layers = d->nodes[i].layer + 1;
}

static void diagram_bend(diagram *d) {
    for (size_t i = 0; i < d->link_count; i++) {
        diagram_link *link = &d->links[i];
        const size_t from = d->nodes[diagram_left(link)].layer,
                     to = d->nodes[diagram_right(link)].layer;
        for (size_t layer = from + 1; layer < to; layer++) {
            d->nodes = grow_for(d->nodes, d->node_count, sizeof *d->nodes);
            link->bends = grow_for(link->bends, link->count, sizeof *link->bends);
            link->bends[link->count++] = d->node_count;
            d->nodes[d->node_count++] = (diagram_node){ .layer = layer };
        }
    }
}

/* ---- places ---- */

static void diagram_wish(double *sums, size_t node, double y) {
    sums[2 * node] += y;
    sums[2 * node + 1] += 1;
}

/* Where neighbours would have each node: the mean of their middles. */
static void diagram_wishes(diagram *d) {
    double *sums = grow(NULL, (2 * d->node_count + 2) * sizeof *sums);
    for (size_t i = 0; i < 2 * d->node_count; i++) sums[i] = 0;
    for (size_t i = 0; i < d->link_count; i++) {
        const diagram_link *link = &d->links[i];
        size_t last = diagram_left(link);
        if (link->child != link->parent)
            for (size_t k = 0; k <= link->count; k++) {
                const size_t next = k < link->count ? link->bends[k] : diagram_right(link);
                diagram_wish(sums, last, d->nodes[next].y + d->nodes[next].height / 2);
                diagram_wish(sums, next, d->nodes[last].y + d->nodes[last].height / 2);
                last = next;
            }
    }
    for (size_t i = 0; i < d->node_count; i++) {
        diagram_node *n = &d->nodes[i];
        n->wish = sums[2 * i + 1] > 0 ? sums[2 * i] / sums[2 * i + 1] : n->y + n->height / 2;
    }
    free(sums);
}

static const diagram_node *diagram_sorted;

static int diagram_compare(const void *a, const void *b) {
    const size_t i = *(const size_t *)a, k = *(const size_t *)b;
    const double x = diagram_sorted[i].wish, y = diagram_sorted[k].wish;
    return x != y ? (x > y) - (x < y) : (i > k) - (i < k);
}

/* Sets the nodes of a layer below each other, each as near to its wish as those above let it. */
static void diagram_stack(diagram *d, size_t layer, size_t *order) {
    size_t count = 0;
    double below = 0, moved = 0;
    for (size_t i = 0; i < d->node_count; i++)
        if (d->nodes[i].layer == layer) order[count++] = i;
    diagram_sorted = d->nodes;
    qsort(order, count, sizeof *order, diagram_compare);
    for (size_t i = 0; i < count; i++) {
        diagram_node *n = &d->nodes[order[i]];
        const double wish = n->wish - n->height / 2;
        n->y = i && wish < below ? below : wish;
        moved += n->y - wish;
        below = n->y + n->height + GAP_Y;
    }
    for (size_t i = 0; i < count; i++) d->nodes[order[i]].y -= moved / (double)count;
}

static void diagram_place(diagram *d) {
    size_t *order = grow(NULL, (d->node_count + 1) * sizeof *order);
    double top = 0;
    for (size_t sweep = 0; sweep < SWEEPS; sweep++) {
        diagram_wishes(d);
        for (size_t layer = 0; layer < d->layers; layer++) diagram_stack(d, layer, order);
    }
    free(order);
    for (size_t i = 0; i < d->node_count; i++) top = i && top < d->nodes[i].y ? top : d->nodes[i].y;
    for (size_t i = 0; i < d->node_count; i++) {
        d->nodes[i].y += TITLE + MARGIN - top;
        d->nodes[i].x = MARGIN + (double)d->nodes[i].layer * (BOX_WIDTH + GAP_X);
    }
}

/* ---- drawing ---- */

static const char diagram_style[] =
    ":root{color-scheme:light dark}"
    ".back{fill:#ffffff}.box{fill:#ffffff;stroke:#818b98}.head{fill:#ddf4ff;stroke:#818b98}"
    ".ink{fill:#1f2328}.faint{fill:#59636e}.bad{fill:#bc4c00}"
    ".link{fill:none;stroke:#0969da;stroke-width:1.5}.tip{fill:#0969da}"
    ".link.off{stroke:#bc4c00}.tip.off{fill:#bc4c00}"
    "@media (prefers-color-scheme:dark){"
    ".back{fill:#0d1117}.box{fill:#151b23;stroke:#656c76}.head{fill:#1b3a5c;stroke:#656c76}"
    ".ink{fill:#f0f6fc}.faint{fill:#9198a1}.bad{fill:#f0883e}"
    ".link{stroke:#4493f8}.tip{fill:#4493f8}.link.off{stroke:#f0883e}.tip.off{fill:#f0883e}}"
    "text{font-family:system-ui,sans-serif;font-size:12px}.title{font-size:15px;font-weight:600}."
    "name{font-weight:600}";

/* A text of at most so many letters; the whole of it where a reader points at it. */
static void diagram_write(FILE *out, const char *class, double x, double y, bool end,
                          const char *text, size_t most) {
    char shown[4 * SHOWN_LETTERS + 8];
    size_t letters = 0, bytes = 0;
    for (; text[bytes] && letters < most; letters++)
        for (bytes++; ((unsigned char)text[bytes] & 0xC0) == 0x80;) bytes++;
    const bool cut = text[bytes] && letters == most;
    snprintf(shown, sizeof shown, "%.*s%s", (int)bytes, text, cut ? "\xE2\x80\xA6" : "");
    fprintf(out, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\"%s>", class, x, y,
            end ? " text-anchor=\"end\"" : "");
    svg_escape(out, shown);
    if (cut) {
        fputs("<title>", out);
        svg_escape(out, text);
        fputs("</title>", out);
    }
    fputs("</text>\n", out);
}

/* The part of "orders.customer_id" that names columns. */
static const char *diagram_key(const diagram_link *link) {
    const char *name = diagram_text(link->link, "name"), *table = diagram_text(link->link, "child");
    const size_t n = strlen(table);
    return !strncmp(name, table, n) && name[n] == '.' ? name + n + 1 : name;
}

static bool diagram_dangles(const diagram_link *link) {
    return json_integer_value(json_object_get(link->link, "dangling")) > 0;
}

static double diagram_line_y(const diagram_node *n, size_t line) {
    return n->y + BOX_HEAD + BOX_LINE * (double)line + 15;
}

static void diagram_box(FILE *out, const diagram *d, size_t table) {
    const diagram_node *n = &d->nodes[table];
    const json_t *columns = json_object_get(n->table, "columns");
    const size_t count = json_array_size(columns),
                 shown = count > SHOWN_COLUMNS ? SHOWN_COLUMNS - 1 : count;
    char text[48];
    fprintf(out,
            "<rect class=\"box\" x=\"%.1f\" y=\"%.1f\" width=\"%d\" height=\"%.1f\" rx=\"4\"/>\n",
            n->x, n->y, BOX_WIDTH, n->height);
    fprintf(out,
            "<rect class=\"head\" x=\"%.1f\" y=\"%.1f\" width=\"%d\" height=\"%d\" rx=\"4\"/>\n",
            n->x, n->y, BOX_WIDTH, BOX_HEAD - 4);
    diagram_write(out, "ink name", n->x + 10, n->y + 17, false, diagram_text(n->table, "name"), 18);
    const long long rows = json_integer_value(json_object_get(n->table, "rows"));
    snprintf(text, sizeof text, "%lld row%s", rows, rows == 1 ? "" : "s");
    diagram_write(out, "faint", n->x + BOX_WIDTH - 10, n->y + 17, true, text, SHOWN_LETTERS);
    for (size_t i = 0; i < d->link_count; i++) {
        const diagram_link *link = &d->links[i];
        if (link->child != table) continue;
        const double y = diagram_line_y(n, link->line);
        diagram_write(out, "ink", n->x + 10, y, false, diagram_key(link), 18);
        snprintf(text, sizeof text, "%lld dangling",
                 (long long)json_integer_value(json_object_get(link->link, "dangling")));
        diagram_write(out, diagram_dangles(link) ? "bad" : "faint", n->x + BOX_WIDTH - 10, y, true,
                      diagram_dangles(link) ? text : "key", SHOWN_LETTERS);
    }
    for (size_t i = 0; i < shown; i++) {
        const json_t *column = json_array_get(columns, i);
        const double y = diagram_line_y(n, n->links + i);
        diagram_write(out, "ink", n->x + 10, y, false, diagram_text(column, "name"), 20);
        diagram_write(out, "faint", n->x + BOX_WIDTH - 10, y, true, diagram_text(column, "stype"),
                      SHOWN_LETTERS);
    }
    snprintf(text, sizeof text, "and %zu more columns", count - shown);
    if (shown < count)
        diagram_write(out, "faint", n->x + 10, diagram_line_y(n, n->links + shown), false, text,
                      SHOWN_LETTERS);
}

static void diagram_curve(FILE *out, double *x, double *y, double to_x, double to_y) {
    const double half = (to_x - *x) / 2;
    fprintf(out, " C%.1f,%.1f %.1f,%.1f %.1f,%.1f", *x + half, *y, to_x - half, to_y, to_x, to_y);
    *x = to_x;
    *y = to_y;
}

/* From the key's line to the head of the parent. */
static void diagram_arrow(FILE *out, const diagram *d, const diagram_link *link) {
    const diagram_node *child = &d->nodes[link->child], *parent = &d->nodes[link->parent];
    const char *off = diagram_dangles(link) ? " off" : "";
    /* begins at the right of the child */
    const bool loop = child == parent, back = loop || link->turned;
    double x = child->x + (back ? BOX_WIDTH : 0), y = diagram_line_y(child, link->line) - 4;
    const double tip_x = parent->x + (back && !loop ? 0 : BOX_WIDTH),
                 tip_y = parent->y + BOX_HEAD / 2.0 - 2;
    const double tail = back && !loop ? -8 : 8;
    fprintf(out, "<path class=\"link%s\" d=\"M%.1f,%.1f", off, x, y);
    for (size_t k = 0; k < link->count; k++) {
        const diagram_node *bend = &d->nodes[link->bends[back ? k : link->count - 1 - k]];
        diagram_curve(out, &x, &y, bend->x + (back ? 0 : BOX_WIDTH), bend->y);
        x = bend->x + (back ? BOX_WIDTH : 0);
        fprintf(out, " L%.1f,%.1f", x, y);
    }
    if (loop)
        fprintf(out, " C%.1f,%.1f %.1f,%.1f %.1f,%.1f", x + 44, y, tip_x + 44, tip_y, tip_x + tail,
                tip_y);
    else
        diagram_curve(out, &x, &y, tip_x + tail, tip_y);
    fputs("\"><title>", out);
    svg_escape(out, diagram_text(link->link, "name"));
    fputs(" names a row of ", out);
    svg_escape(out, diagram_text(link->link, "parent"));
    fprintf(out, "</title></path>\n<path class=\"tip%s\" d=\"M%.1f,%.1f l%.1f,-5 v10 z\"/>\n", off,
            tip_x, tip_y, tail);
}

static void diagram_draw(FILE *out, const diagram *d, const json_t *database) {
    double height = TITLE + MARGIN,
           width = MARGIN * 2 + (double)d->layers * (BOX_WIDTH + GAP_X) - 30;
    for (size_t i = 0; i < d->node_count; i++) {
        const double end = d->nodes[i].y + d->nodes[i].height + MARGIN;
        height = end > height ? end : height;
    }
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" "
            "height=\"%.0f\" "
            "role=\"img\">\n<title>Tables of ",
            width, height, width, height);
    svg_escape(out, diagram_text(database, "name"));
    fprintf(out,
            "</title>\n<style>%s</style>\n<rect class=\"back\" width=\"%.0f\" height=\"%.0f\"/>\n",
            diagram_style, width, height);
    diagram_write(out, "ink title", MARGIN, 30, false, diagram_text(database, "name"),
                  SHOWN_LETTERS);
    for (size_t i = 0; i < d->link_count; i++) diagram_arrow(out, d, &d->links[i]);
    for (size_t i = 0; i < d->tables; i++) diagram_box(out, d, i);
    fputs("</svg>\n", out);
}

/* ---- the whole ---- */

static void diagram_read(diagram *d, const json_t *database) {
    const json_t *tables = json_object_get(database, "tables"),
                 *links = json_object_get(database, "links");
    for (; d->node_count < d->tables; d->node_count++) {
        d->nodes = grow_for(d->nodes, d->node_count, sizeof *d->nodes);
        d->nodes[d->node_count] = (diagram_node){ .table = json_array_get(tables, d->node_count) };
    }
    for (size_t i = 0; i < json_array_size(links); i++) {
        diagram_link link = { .link = json_array_get(links, i) };
        link.child = diagram_find(d, diagram_text(link.link, "child"));
        link.parent = diagram_find(d, diagram_text(link.link, "parent"));
        if (link.child == d->tables || link.parent == d->tables) continue;
        link.line = d->nodes[link.child].links++;
        d->links[d->link_count++] = link;
    }
    for (size_t i = 0; i < d->tables; i++) {
        const size_t columns = json_array_size(json_object_get(d->nodes[i].table, "columns"));
        const size_t lines =
            d->nodes[i].links + (columns > SHOWN_COLUMNS ? SHOWN_COLUMNS : columns);
        d->nodes[i].height = BOX_HEAD + BOX_LINE * (double)lines + BOX_FOOT;
    }
}

const char *database_diagram(FILE *out, const json_t *database) {
    diagram d = { .tables = json_array_size(json_object_get(database, "tables")) };
    const size_t links = json_array_size(json_object_get(database, "links"));
    if (d.tables > MOST_TABLES || links > MOST_LINKS)
        return "a diagram has at most 400 tables and 1000 links, and this database has more";
    d.links = grow(NULL, (links + 1) * sizeof *d.links);
    diagram_read(&d, database);
    diagram_layer(&d);
    diagram_bend(&d);
    diagram_place(&d);
    diagram_draw(out, &d, database);
    for (size_t i = 0; i < d.link_count; i++) free(d.links[i].bends);
    free(d.links);
    free(d.nodes);
    return NULL;
}

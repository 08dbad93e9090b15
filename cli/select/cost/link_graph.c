/* link_graph.c - see link_graph.h. The archive is a file from anywhere: every offset in it is
 * checked. */
#include "cli/select/cost/link_graph.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/mapped_file.h"

typedef struct link_object {
    const unsigned char *data; /* the member */
    size_t size;
    char name[64];
    size_t first;      /* section 0 among all sections */
    Elf64_Shdr *parts; /* [count] */
    size_t count;
    bool table;
} link_object;

typedef struct link_section {
    uint32_t object;
    bool loaded; /* a part of the program */
    bool piece;
    uint64_t bytes;
    size_t edge, edges; /* in link_graph.edges */
    const char *name;
} link_section;

typedef struct link_symbol {
    const char *name;
    size_t section;
} link_symbol;

struct link_graph {
    pith__file file;
    const command *c;
    const char *path;
    link_object *objects;
    link_section *sections;
    link_symbol *symbols;
    size_t *edges;
    size_t object_count, section_count, symbol_count, edge_count, edge_room;
};

static int link_graph_bad(const link_graph *g, const link_object *o, const char *what) {
    return fail(g->c, "%s: %s%s%s", g->path, o ? o->name : "", o ? ": " : "", what);
}

/* ---- objects ---- */

static bool link_object_has(const link_object *o, uint64_t at, uint64_t size) {
    return at <= o->size && size <= o->size - at;
}

/* The bytes of a section in the file; NULL: they are not all there. */
static const unsigned char *link_object_part(const link_object *o, size_t index) {
    const Elf64_Shdr *part = index < o->count ? &o->parts[index] : NULL;
    return part && part->sh_type != SHT_NOBITS && link_object_has(o, part->sh_offset, part->sh_size)
               ? o->data + part->sh_offset
               : NULL;
}

/* A text of a table of strings; NULL: it is not there. */
static const char *link_object_string(const link_object *o, size_t table, uint64_t at) {
    const unsigned char *text = link_object_part(o, table);
    const uint64_t size = text ? o->parts[table].sh_size : 0;
    return at < size && memchr(text + at, 0, size - at) ? (const char *)text + at : NULL;
}

static bool link_object_read(link_object *o) {
    Elf64_Ehdr head;
    if (!link_object_has(o, 0, sizeof head)) return false;
    memcpy(&head, o->data, sizeof head);
    if (memcmp(head.e_ident, ELFMAG, SELFMAG) || head.e_ident[EI_CLASS] != ELFCLASS64 ||
        head.e_ident[EI_DATA] != ELFDATA2LSB || head.e_type != ET_REL ||
        head.e_shentsize != sizeof(Elf64_Shdr) ||
        !link_object_has(o, head.e_shoff, sizeof(Elf64_Shdr)))
        return false;
    Elf64_Shdr first;
    memcpy(&first, o->data + head.e_shoff, sizeof first);
    /* many sections: their number is in the first one */
    o->count = head.e_shnum ? head.e_shnum : first.sh_size;
    if (o->count > o->size / sizeof first ||
        !link_object_has(o, head.e_shoff, o->count * sizeof first))
        return false;
    o->parts = grow(NULL, (o->count + 1) * sizeof *o->parts);
    memcpy(o->parts, o->data + head.e_shoff, o->count * sizeof first);
    const size_t names = head.e_shstrndx == SHN_XINDEX ? first.sh_link : head.e_shstrndx;
    for (size_t i = 0; i < o->count; i++)
        if (!link_object_string(o, names, o->parts[i].sh_name)) return false;
    o->parts[o->count] = (Elf64_Shdr){ .sh_link = (uint32_t)names };
    return true;
}

static void link_graph_add_sections(link_graph *g, link_object *o) {
    g->sections = grow(g->sections, (g->section_count + o->count + 1) * sizeof *g->sections);
    o->first = g->section_count;
    for (size_t i = 0; i < o->count; i++) {
        const Elf64_Shdr *part = &o->parts[i];
        const char *name = link_object_string(o, o->parts[o->count].sh_link, part->sh_name);
        const uint64_t align =
            part->sh_addralign && part->sh_addralign < 4096 ? part->sh_addralign : 1;
        const bool loaded = (part->sh_flags & SHF_ALLOC) && part->sh_type != SHT_NOTE &&
                            strcmp(name, ".eh_frame") != 0;
        const bool counts = loaded && part->sh_type != SHT_NOBITS && part->sh_size <= o->size;
        g->sections[g->section_count++] = (link_section){
            .object = (uint32_t)(o - g->objects),
            .loaded = loaded,
            .bytes = counts ? (part->sh_size + align - 1) / align * align : 0,
            .name = name,
        };
    }
}

/* ---- the archive ---- */

/* A number in decimal digits, as headers of members have it; SIZE_MAX: it is none. */
static size_t link_graph_number(const unsigned char *text, size_t size) {
    size_t value = 0, digits = 0;
    for (; digits < size && text[digits] >= '0' && text[digits] <= '9'; digits++)
        value = value * 10 + (size_t)(text[digits] - '0');
    return digits && digits < 16 ? value : SIZE_MAX;
}

/* "name.o/" or "/12", which points into the table of long names. */
static void link_graph_member_name(char *out, size_t size, const unsigned char *head,
                                   const unsigned char *names, size_t names_size) {
    const unsigned char *text = head;
    size_t n = 16;
    const size_t at = head[0] == '/' ? link_graph_number(head + 1, 15) : SIZE_MAX;
    if (at < names_size) text = names + at, n = names_size - at;
    const unsigned char *end = memchr(text, '/', n);
    if (end)
        n = (size_t)(end - text);
    else if (n > 16)
        n = 16;
    snprintf(out, size, "%.*s", (int)n, (const char *)text);
}

static int link_graph_read_members(link_graph *g) {
    const unsigned char *data = g->file.data, *names = NULL;
    size_t names_size = 0;
    if (g->file.size < 8 || memcmp(data, "!<arch>\n", 8))
        return link_graph_bad(g, NULL, "no static library; name one such as libpith.a");
    for (size_t at = 8; at + 60 <= g->file.size;) {
        const unsigned char *head = data + at;
        const size_t size = link_graph_number(head + 48, 10);
        if (head[58] != '`' || size > g->file.size - at - 60)
            return link_graph_bad(g, NULL, "a member ends behind the end of the file");
        if (!memcmp(head, "//", 2)) {
            names = head + 60, names_size = size;
        } else if (memcmp(head, "/ ", 2) && memcmp(head, "/SYM64/", 7)) {
            g->objects = grow_for(g->objects, g->object_count, sizeof *g->objects);
            link_object *o = &g->objects[g->object_count++];
            *o = (link_object){ .data = head + 60, .size = size };
            link_graph_member_name(o->name, sizeof o->name, head, names, names_size);
            if (!link_object_read(o))
                return link_graph_bad(g, o, "no object of 64 bits that a linker for ELF can read");
        }
        at += 60 + size + (size & 1);
    }
    for (size_t i = 0; i < g->object_count; i++) link_graph_add_sections(g, &g->objects[i]);
    return EXIT_DONE;
}

/* ---- symbols and references ---- */

static int link_symbol_compare(const void *a, const void *b) {
    return strcmp(((const link_symbol *)a)->name, ((const link_symbol *)b)->name);
}

/* Symbol number i of a table; false: it is not there. */
static bool link_object_symbol(const link_object *o, size_t table, uint64_t i, Elf64_Sym *symbol) {
    const unsigned char *symbols = link_object_part(o, table);
    if (!symbols || i >= o->parts[table].sh_size / sizeof *symbol) return false;
    memcpy(symbol, symbols + i * sizeof *symbol, sizeof *symbol);
    return true;
}

static void link_graph_add_symbols(link_graph *g, const link_object *o) {
    Elf64_Sym symbol;
    for (size_t t = 0; t < o->count; t++) {
        if (o->parts[t].sh_type != SHT_SYMTAB) continue;
        for (uint64_t i = 0; link_object_symbol(o, t, i, &symbol); i++) {
            if (ELF64_ST_BIND(symbol.st_info) == STB_LOCAL || symbol.st_shndx >= o->count ||
                !symbol.st_shndx)
                continue;
            const char *name = link_object_string(o, o->parts[t].sh_link, symbol.st_name);
            g->symbols = grow_for(g->symbols, g->symbol_count, sizeof *g->symbols);
            if (name)
                g->symbols[g->symbol_count++] = (link_symbol){ name, o->first + symbol.st_shndx };
        }
    }
}

/* Where symbol number i of a table is defined; LINK_NONE: in another library. */
static int64_t link_graph_target(const link_graph *g, const link_object *o, size_t table,
                                 uint64_t i) {
    Elf64_Sym symbol;
    if (!link_object_symbol(o, table, i, &symbol)) return LINK_NONE;
    if (symbol.st_shndx && symbol.st_shndx < o->count) return (int64_t)(o->first + symbol.st_shndx);
    const char *name =
        symbol.st_shndx ? NULL : link_object_string(o, o->parts[table].sh_link, symbol.st_name);
    return name ? link_graph_find(g, name) : LINK_NONE;
}

/* The size of the unwind entry whose function stands at this offset of .eh_frame; 0: none does. */
static uint64_t link_object_entry_bytes(const unsigned char *frames, uint64_t size,
                                        uint64_t function) {
    if (function < 8 || function > size) return 0;
    uint32_t length, pointer;
    memcpy(&length, frames + function - 8, 4);
    memcpy(&pointer, frames + function - 4, 4);
    /* pointer 0: what entries share */
    return pointer && length <= size - function + 4 ? length + UINT64_C(4) : 0;
}

static void link_graph_add_edges(link_graph *g, const link_object *o, const Elf64_Shdr *part,
                                 size_t index) {
    const unsigned char *data = link_object_part(o, index);
    const bool known = data && part->sh_info < o->count;
    link_section *source = known ? &g->sections[o->first + part->sh_info] : NULL;
    const bool frames = known && !strcmp(source->name, ".eh_frame");
    const unsigned char *frame = frames ? link_object_part(o, part->sh_info) : NULL;
    if (!known || !(source->loaded || frame)) return;
    if (source->loaded) source->edge = g->edge_count, source->edges = 0;
    for (uint64_t i = 0; i < part->sh_size / sizeof(Elf64_Rela); i++) {
        Elf64_Rela rela;
        memcpy(&rela, data + i * sizeof rela, sizeof rela);
        const int64_t target = link_graph_target(g, o, part->sh_link, ELF64_R_SYM(rela.r_info));
        if (target < 0 || !g->sections[target].loaded) continue;
        if (frame) {
            g->sections[target].bytes +=
                link_object_entry_bytes(frame, o->parts[part->sh_info].sh_size, rela.r_offset);
        } else {
            g->edges = grow_for(g->edges, g->edge_count, sizeof *g->edges);
            g->edges[g->edge_count++] = (size_t)target;
            source->edges++;
        }
    }
}

int link_graph_open(link_graph **out, const command *c, const char *path) {
    link_graph *g = grow(NULL, sizeof *g);
    *g = (link_graph){ .c = c, .path = path };
    *out = NULL;
    int code = map_file(&g->file, c, path);
    if (!code) code = link_graph_read_members(g);
    if (!code)
        for (size_t i = 0; i < g->object_count; i++) link_graph_add_symbols(g, &g->objects[i]);
    if (g->symbol_count)
        qsort(g->symbols, g->symbol_count, sizeof *g->symbols, link_symbol_compare);
    if (!code)
        for (size_t i = 0; i < g->object_count; i++)
            for (size_t k = 0; k < g->objects[i].count; k++)
                if (g->objects[i].parts[k].sh_type == SHT_RELA)
                    link_graph_add_edges(g, &g->objects[i], &g->objects[i].parts[k], k);
    if (!code) *out = g;
    if (code) link_graph_close(g);
    return code;
}

void link_graph_close(link_graph *g) {
    if (!g) return;
    for (size_t i = 0; i < g->object_count; i++) free(g->objects[i].parts);
    pith__file_close(&g->file);
    free(g->objects);
    free(g->sections);
    free(g->symbols);
    free(g->edges);
    free(g);
}

/* ---- questions ---- */

int64_t link_graph_find(const link_graph *g, const char *symbol) {
    const link_symbol key = { symbol, 0 };
    const link_symbol *found = g->symbol_count ? bsearch(&key, g->symbols, g->symbol_count,
                                                         sizeof key, link_symbol_compare)
                                               : NULL;
    return found ? (int64_t)found->section : LINK_NONE;
}

size_t link_graph_count(const link_graph *g) { return g->section_count; }

void link_graph_name(char *text, size_t size, const link_graph *g, size_t section) {
    snprintf(text, size, "%s %s", g->objects[g->sections[section].object].name,
             g->sections[section].name);
}

bool link_graph_set_table(link_graph *g, const char *symbol) {
    const int64_t section = link_graph_find(g, symbol);
    if (section >= 0) g->objects[g->sections[section].object].table = true;
    return section >= 0;
}

void link_graph_set_piece(link_graph *g, size_t section) { g->sections[section].piece = true; }

/* The bytes of a section; a table has as much of its own as it has of its pieces. */
static uint64_t link_graph_bytes(const link_graph *g, const link_section *s,
                                 const unsigned char *shut) {
    size_t pieces = 0, open = 0;
    if (!g->objects[s->object].table) return s->bytes;
    for (size_t i = 0; i < s->edges; i++) {
        const size_t to = g->edges[s->edge + i];
        pieces += g->sections[to].piece;
        open += g->sections[to].piece && !shut[to];
    }
    return pieces ? s->bytes * open / pieces : s->bytes;
}

uint64_t link_graph_reach(const link_graph *g, size_t section, const unsigned char *shut,
                          unsigned char *seen, uint32_t *from) {
    size_t *open = grow(NULL, (g->section_count + 1) * sizeof *open), count = 0;
    uint64_t bytes = 0;
    if (!seen[section]) open[count++] = section;
    seen[section] = 1;
    while (count) {
        const size_t at = open[--count];
        const link_section *s = &g->sections[at];
        bytes += link_graph_bytes(g, s, shut);
        for (size_t i = 0; i < s->edges; i++) {
            const size_t to = g->edges[s->edge + i];
            if (seen[to] || (shut[to] && g->objects[s->object].table)) continue;
            seen[to] = 1;
            if (from) from[to] = (uint32_t)at;
            open[count++] = to;
        }
    }
    free(open);
    return bytes;
}

/* SPDX-License-Identifier: MIT */
/*
 * Live progress display. It has a head (run, progress), a list (sessions, tasks
 * that need an operator, other waiting tasks) and a foot (expected end). The
 * list gets the remaining rows. Each of its three parts is guaranteed a third
 * of them and may use the rows that the others leave.
 *
 * A line is always shorter than the terminal width, and the lines are fewer
 * than the rows: so no line wraps, and the first line has not scrolled away
 * when the cursor returns to it.
 */
#include "term/live.h"

#include "base/duration.h"
#include "base/invariant.h"
#include "base/macros.h"
#include "base/mem.h"
#include "base/plain.h"
#include "view/lines.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    COLUMNS_DEFAULT = 80,
    ROWS_DEFAULT = 24,
    COLUMNS_MIN = 20,
    ROWS_MIN = 4,
    WORD_COLUMNS = 9, /* "starting" and a space */
    WAITING_MAX = 12, /* maximum rows for waiting tasks */
};

#define DRAW_NS (SECOND_NS / 10)
#define DRAW_NS_PER_TASK INT64_C(5000)

struct live {
    struct live_options options; /* of the last drawing */
    bool broken;                 /* writing to standard output failed */
    bool shown;                  /* the display is on the terminal */
    struct strbuf drawn;         /* its content */
    uint64_t *slots;             /* tokens; 0: free */
    uint32_t slot_count;
};

/* --- text --------------------------------------------------------------- */

enum colour { PLAIN, BOLD, DIM, RED, GREEN, YELLOW, CYAN };

/* Display being written. */
struct canvas {
    struct strbuf *out;
    const struct model *model;
    const struct model_run *run;
    const struct live_options *options;
    uint32_t width;      /* columns of a line */
    uint32_t id_columns; /* of the name column */
};

/* Parts of the list. */
enum part { PART_SESSIONS, PART_PEOPLE, PART_WAITING, PART_COUNT };

static void
add_coloured(struct canvas *canvas, enum colour colour, const char *text)
{
    static const char *const codes[] = {
        [PLAIN] = "",
        [BOLD] = "1",
        [DIM] = "2",
        [RED] = "31",
        [GREEN] = "32",
        [YELLOW] = "33",
        [CYAN] = "36",
    };
    bool coloured = canvas->options->colours && colour != PLAIN;
    if (coloured) {
        strbuf_addf(canvas->out, "\x1b[%sm", codes[colour]);
    }
    strbuf_adds(canvas->out, text);
    strbuf_adds(canvas->out, coloured ? "\x1b[0m" : "");
}

/* Add a line of one colour, cut to the width. */
static void
add_line(struct canvas *canvas, enum colour colour, const struct strbuf *text)
{
    struct strbuf cut = {0};
    plain_add_cut(&cut, strbuf_text(text), canvas->width);
    add_coloured(canvas, colour, strbuf_text(&cut));
    strbuf_adds(canvas->out, "\n");
    strbuf_release(&cut);
}

static const enum colour state_colours[TASK_STATE_COUNT] = {
    [TASK_WAITING] = DIM,
    [TASK_READY] = YELLOW,
    [TASK_STARTING] = CYAN,
    [TASK_RUNNING] = CYAN,
    [TASK_DONE] = GREEN,
    [TASK_FAILED] = RED,
    [TASK_PARKED] = RED,
    [TASK_SKIPPED] = PLAIN,
    [TASK_CANCELLED] = PLAIN,
};

static void add_head(struct canvas *canvas)
{
    const struct live_options *options = canvas->options;
    const struct model_run *run = canvas->run;
    int64_t gone_ns = options->wall_ns - options->began_ns;
    struct strbuf text = {0};
    plain_add(&text, run->id);
    strbuf_adds(&text, "  ");
    duration_add(&text, gone_ns > 0 ? gone_ns : 0);
    if (run->cap == LIMIT_NONE) {
        strbuf_adds(&text, "  no cap");
    } else {
        strbuf_addf(&text, "  cap %lld", (long long)run->cap);
    }
    strbuf_adds(&text, run->paused ? "  paused" : "");
    strbuf_adds(&text, run->cancelled ? "  cancelled" : "");
    strbuf_adds(
        &text,
        run->stopped == SCHED_STOPPED_DEADLINE  ? "  stopped by its deadline"
        : run->stopped == SCHED_STOPPED_FAILURE ? "  stopped by a failure"
                                                : "");
    add_line(canvas, BOLD, &text);
    strbuf_clear(&text);
    strbuf_addf(&text,
                "%u of %u done",
                run->counts[TASK_DONE],
                run->task_count);
    /* Skip done, the first state of model_order. */
    lines_add_counts(&text,
                     ", ",
                     run->counts,
                     model_order + 1,
                     TASK_STATE_COUNT - 1);
    add_line(canvas, PLAIN, &text);
    strbuf_release(&text);
}

/* Add a bar of full width: done, in flight, in trouble, left. */
static void add_bar(struct canvas *canvas)
{
    static const struct {
        enum colour colour;
        const char *cell;
        const char *ascii;
    } parts[MODEL_BAR_PARTS + 1] = {
        {GREEN, "\u2501", "#"},
        {CYAN, "\u2501", ">"},
        {RED, "\u2501", "!"},
        {DIM, "\u2500", "-"},
    };
    bool unicode = canvas->options->unicode;
    uint32_t ends[MODEL_BAR_PARTS + 1] = {0};
    uint32_t drawn = 0;
    model_bar(canvas->run, canvas->width, ends);
    ends[MODEL_BAR_PARTS] = canvas->width;
    for (size_t ix = 0; ix < ARRAY_COUNT(parts); ix++) {
        struct strbuf cells = {0};
        for (; drawn < ends[ix]; drawn++) {
            strbuf_adds(&cells, unicode ? parts[ix].cell : parts[ix].ascii);
        }
        if (cells.len > 0) {
            add_coloured(canvas, parts[ix].colour, cells.text);
        }
        strbuf_release(&cells);
    }
    strbuf_adds(canvas->out, "\n");
}

/* --- the list ----------------------------------------------------------- */

/* Add a list line: coloured state, name, details. */
static void add_item(struct canvas *canvas,
                     const char *word,
                     enum colour colour,
                     const char *id,
                     const struct strbuf *rest)
{
    struct strbuf cell = {0};
    strbuf_addf(&cell, "  %-*s", WORD_COLUMNS, word);
    if (cell.len > canvas->width) {
        strbuf_release(&cell);
        return;
    }
    uint32_t used = (uint32_t)cell.len;
    add_coloured(canvas, colour, strbuf_text(&cell));
    strbuf_clear(&cell);
    struct strbuf name = {0};
    plain_add(&name, id);
    plain_add_cut(&cell, strbuf_text(&name), canvas->id_columns);
    strbuf_pad(&cell,
               ' ',
               canvas->id_columns - plain_columns(strbuf_text(&cell)) + 2);
    strbuf_adds(&cell, strbuf_text(rest));
    plain_add_cut(canvas->out, strbuf_text(&cell), canvas->width - used);
    strbuf_adds(canvas->out, "\n");
    strbuf_release(&name);
    strbuf_release(&cell);
}

static void add_more(struct canvas *canvas, uint32_t count, const char *what)
{
    struct strbuf text = {0};
    strbuf_addf(&text,
                "  %*s ... and %u more %s",
                WORD_COLUMNS - 1,
                "",
                count,
                what);
    add_line(canvas, DIM, &text);
    strbuf_release(&text);
}

static void add_session(struct canvas *canvas,
                        uint32_t number,
                        const struct model_slot *slot)
{
    struct strbuf word = {0};
    struct strbuf rest = {0};
    strbuf_addf(&word, "slot %u", number + 1);
    strbuf_addf(&rest, "%s  ", slot->class_name);
    if (slot->attempt > 1) {
        strbuf_addf(&rest, "attempt %u  ", slot->attempt);
    }
    if (slot->begun) {
        int64_t gone_ns = canvas->options->wall_ns - slot->since_ns;
        duration_add(&rest, gone_ns > 0 ? gone_ns : 0);
        strbuf_adds(&rest, " of ");
        duration_add(&rest, slot->expected_ns);
    } else {
        strbuf_adds(&rest, "starting");
    }
    if (slot->more > 0) {
        strbuf_addf(&rest, "  with %u more", slot->more);
    }
    queue_add(&rest, &slot->queue);
    add_item(canvas,
             strbuf_text(&word),
             state_colours[TASK_RUNNING],
             slot->task,
             &rest);
    strbuf_release(&word);
    strbuf_release(&rest);
}

/* Return the session with that token, or NULL. */
static const struct model_slot *find_slot(const struct canvas *canvas,
                                          uint64_t token)
{
    for (uint32_t ix = 0; token != 0 && ix < canvas->model->slot_count; ix++) {
        if (canvas->model->slots[ix].token == token) {
            return &canvas->model->slots[ix];
        }
    }
    return NULL;
}

/* Return how many of `count` items to show in `room` rows: the last row reports
 * the rest, unless it is the only row. */
static uint32_t items_in(uint32_t count, uint32_t room)
{
    if (count <= room) {
        return count;
    }
    return room > 1 ? room - 1 : room;
}

static void add_sessions(struct canvas *canvas, uint32_t count, uint32_t room)
{
    uint32_t whole = items_in(count, room);
    uint32_t shown = 0;
    for (uint32_t ix = 0; ix < canvas->options->slot_count && shown < whole;
         ix++) {
        const struct model_slot *slot =
            find_slot(canvas, canvas->options->slots[ix]);
        if (slot != NULL) {
            add_session(canvas, ix, slot);
            shown++;
        }
    }
    if (whole < count && whole < room) {
        add_more(canvas, count - whole, "in flight");
    }
}

static void add_task(struct canvas *canvas, uint32_t task)
{
    struct model_task described;
    struct strbuf rest = {0};
    canvas->model->describe(canvas->model, task, &described, &rest);
    add_item(canvas,
             sched_state_name(described.state),
             state_colours[described.state],
             described.id,
             &rest);
    strbuf_release(&rest);
}

/* Add the tasks of a part; the rows list ready tasks first. */
static void
add_tasks(struct canvas *canvas, enum part part, uint32_t count, uint32_t room)
{
    const struct model *model = canvas->model;
    uint32_t whole = items_in(count, room);
    uint32_t first = part == PART_PEOPLE ? 0 : model->part_counts[MODEL_PEOPLE];
    for (uint32_t ix = 0; ix < whole; ix++) {
        add_task(canvas, model->rows[first + ix].task);
    }
    if (whole < count && whole < room) {
        add_more(canvas,
                 count - whole,
                 part == PART_PEOPLE ? "that need attention" : "that wait");
    }
}

/* Divide the rows among the parts; see the top of the file. */
static void share_rows(uint32_t rows, const uint32_t *counts, uint32_t *rooms)
{
    uint32_t left = rows;
    for (uint32_t ix = 0; ix < PART_COUNT; ix++) {
        uint32_t sure = rows / PART_COUNT;
        rooms[ix] = counts[ix] < sure ? counts[ix] : sure;
        left -= rooms[ix];
    }
    for (uint32_t ix = 0; ix < PART_COUNT; ix++) {
        uint32_t wanted = counts[ix] - rooms[ix];
        uint32_t more = wanted < left ? wanted : left;
        rooms[ix] += more;
        left -= more;
    }
}

static void add_list(struct canvas *canvas, uint32_t rows)
{
    const uint32_t *parts = canvas->model->part_counts;
    uint32_t counts[PART_COUNT] = {
        [PART_PEOPLE] = parts[MODEL_PEOPLE],
        [PART_WAITING] = parts[MODEL_READY] + parts[MODEL_WAITING],
    };
    uint32_t rooms[PART_COUNT];
    for (uint32_t ix = 0; ix < canvas->options->slot_count; ix++) {
        counts[PART_SESSIONS] +=
            find_slot(canvas, canvas->options->slots[ix]) != NULL ? 1 : 0;
    }
    uint32_t wanted[PART_COUNT];
    memcpy(wanted, counts, sizeof(wanted));
    if (wanted[PART_WAITING] > WAITING_MAX) {
        wanted[PART_WAITING] = WAITING_MAX;
    }
    share_rows(rows, wanted, rooms);
    if (rooms[PART_SESSIONS] > 0) {
        add_sessions(canvas, counts[PART_SESSIONS], rooms[PART_SESSIONS]);
    }
    for (enum part part = PART_PEOPLE; part < PART_COUNT; part++) {
        if (rooms[part] > 0) {
            add_tasks(canvas, part, counts[part], rooms[part]);
        }
    }
}

/* Add the estimated time left. */
static void add_foot(struct canvas *canvas)
{
    int64_t wall_ns = canvas->options->wall_ns;
    int64_t left_ns = canvas->run->left_ns;
    struct strbuf text = {0};
    if (left_ns == SCHED_NEVER) {
        strbuf_adds(&text,
                    canvas->run->cap_set == 0
                        ? "the cap is 0: no session starts"
                        : "no session starts until usage allows it");
    } else if (left_ns > 0) {
        bool soon = left_ns < 24 * HOUR_NS;
        strbuf_adds(&text, "about ");
        duration_add(&text, left_ns);
        strbuf_adds(&text, " left by estimates, until ");
        plain_add_clock(&text,
                        wall_ns + left_ns,
                        soon ? PLAIN_MINUTES : PLAIN_DATE);
    } else {
        strbuf_adds(&text,
                    canvas->run->quiet ? "needs attention" : "finishing");
    }
    add_line(canvas, DIM, &text);
    strbuf_release(&text);
}

static uint32_t widest_id(const struct model *model, uint32_t max)
{
    uint32_t widest = 0;
    for (uint32_t ix = 0;
         ix < model->runs[model->run].task_count && widest < max;
         ix++) {
        uint32_t len = (uint32_t)strlen(model->id(model, ix));
        widest = len > widest ? len : widest;
    }
    return widest < max ? widest : max;
}

/* Add a line if a row is left. */
static void add_note(struct canvas *canvas, uint32_t *left, struct strbuf *text)
{
    if (*left > 0 && text->len > 0) {
        add_line(canvas, RED, text);
        (*left)--;
    }
    strbuf_clear(text);
}

/* Add what slows or stops the run. */
static void add_notes(struct canvas *canvas, uint32_t *left)
{
    const struct model *model = canvas->model;
    struct strbuf text = {0};
    if (model->trouble != NULL) {
        strbuf_adds(&text, "trouble: ");
        plain_add(&text, model->trouble);
    }
    add_note(canvas, left, &text);
    strbuf_adds(&text, model->overridden ? "usage is overridden" : "");
    add_note(canvas, left, &text);
    for (uint32_t ix = 0; ix < model->monitor_count; ix++) {
        const struct model_monitor *monitor = &model->monitors[ix];
        if (monitor->lowers || monitor->error != NULL) {
            strbuf_adds(&text, "usage: ");
            if (monitor->provider != NULL) {
                strbuf_addf(&text, "%s ", monitor->provider);
            }
            strbuf_adds(&text, strbuf_text(&monitor->state));
            strbuf_adds(&text,
                        monitor->error != NULL ? ", cannot be read" : "");
        }
        add_note(canvas, left, &text);
    }
    strbuf_release(&text);
}

void live_text(struct strbuf *out,
               const struct model *model,
               const struct live_options *options)
{
    uint32_t columns =
        options->columns > COLUMNS_MIN ? options->columns : COLUMNS_MIN;
    uint32_t rows = options->rows > ROWS_MIN ? options->rows : ROWS_MIN;
    INVARIANT(model->run < model->run_count);
    struct canvas canvas = {
        .out = out,
        .model = model,
        .run = &model->runs[model->run],
        .options = options,
        .width = columns - 1,
        .id_columns = widest_id(model, columns * 2 / 5),
    };
    uint32_t left = rows - 1;
    add_head(&canvas);
    left -= 2;
    if (left > 0) {
        add_bar(&canvas);
        left--;
    }
    add_notes(&canvas, &left);
    if (left > 1) {
        add_list(&canvas, left - 1);
    }
    if (left > 0) {
        add_foot(&canvas);
    }
}

/* --- terminal ----------------------------------------------------------- */

struct live *live_new(bool colours, bool unicode)
{
    struct live *live = mem_zalloc(1, sizeof(*live));
    live->options.colours = colours;
    live->options.unicode = unicode;
    return live;
}

void live_free(struct live *live)
{
    if (live == NULL) {
        return;
    }
    strbuf_release(&live->drawn);
    mem_free(live->slots);
    mem_free(live);
}

/* Assign the first free slot to a token that has none. */
static void put_in_slot(struct live *live, uint64_t token)
{
    uint32_t free = live->slot_count;
    for (uint32_t ix = live->slot_count; ix > 0; ix--) {
        if (live->slots[ix - 1] == token) {
            return;
        }
        free = live->slots[ix - 1] == 0 ? ix - 1 : free;
    }
    if (free == live->slot_count) {
        live->slot_count++;
        live->slots =
            mem_resize(live->slots, live->slot_count, sizeof(live->slots[0]));
    }
    live->slots[free] = token;
}

/* Update the slots; a session keeps its slot until it exits. */
static void assign_slots(struct live *live, const struct model *model)
{
    for (uint32_t ix = 0; ix < live->slot_count; ix++) {
        bool alive = false;
        for (uint32_t n = 0; n < model->slot_count; n++) {
            alive = alive || model->slots[n].token == live->slots[ix];
        }
        live->slots[ix] = alive ? live->slots[ix] : 0;
    }
    for (uint32_t ix = 0; ix < model->slot_count; ix++) {
        put_in_slot(live, model->slots[ix].token);
    }
}

struct winsize live_terminal_size(void)
{
    struct winsize size = {0};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 ||
        size.ws_row == 0) {
        size.ws_col = COLUMNS_DEFAULT;
        size.ws_row = ROWS_DEFAULT;
    }
    return size;
}

/* Return the columns of a line that may contain colours. */
static uint32_t line_columns(const char *line, size_t len)
{
    struct strbuf text = {0};
    bool escape = false;
    for (size_t ix = 0; ix < len; ix++) {
        escape = escape || line[ix] == '\x1b';
        if (!escape) {
            strbuf_add(&text, &line[ix], 1);
        }
        escape = escape && line[ix] != 'm';
    }
    uint32_t columns = plain_columns(strbuf_text(&text));
    strbuf_release(&text);
    return columns;
}

/* Return the rows of a text; a narrowed terminal has wrapped its lines. */
static uint32_t rows_of(const struct strbuf *text, uint32_t columns)
{
    uint32_t rows = 0;
    const char *at = strbuf_text(text);
    const char *end = strchr(at, '\n');
    while (end != NULL) {
        uint32_t wide = line_columns(at, (size_t)(end - at));
        rows += wide > columns ? (wide + columns - 1) / columns : 1;
        at = end + 1;
        end = strchr(at, '\n');
    }
    return rows;
}

static void emit(struct live *live, const struct strbuf *text)
{
    if (fwrite(strbuf_text(text), 1, text->len, stdout) != text->len ||
        fflush(stdout) != 0) {
        live->broken = true;
    }
}

/* Move the cursor to the first row of the display. */
static void
add_return(struct strbuf *out, const struct live *live, uint32_t columns)
{
    uint32_t rows = live->shown ? rows_of(&live->drawn, columns) : 0;
    strbuf_adds(out, "\r");
    if (rows > 0) {
        strbuf_addf(out, "\x1b[%uA", rows);
    }
}

/* Add lines, each of which clears the rest of its row. */
static void add_rows(struct strbuf *out, const struct strbuf *text)
{
    const char *at = strbuf_text(text);
    const char *end = strchr(at, '\n');
    while (end != NULL) {
        strbuf_add(out, at, (size_t)(end - at));
        strbuf_adds(out, "\x1b[K\n");
        at = end + 1;
        end = strchr(at, '\n');
    }
}

void live_draw(struct live *live,
               struct engine *engine,
               uint32_t run,
               int64_t wall_ns)
{
    int64_t pause_ns =
        DRAW_NS_PER_TASK * sched_task_count(engine_sched(engine));
    pause_ns = pause_ns > DRAW_NS ? pause_ns : DRAW_NS;
    int64_t gone_ns = wall_ns - live->options.wall_ns;
    if (live->broken || (live->shown && gone_ns >= 0 && gone_ns < pause_ns)) {
        return;
    }
    struct winsize size = live_terminal_size();
    struct glance glance;
    struct model model = {0};
    glance_of(&glance, engine, wall_ns);
    model_fill(&model, &glance, engine_run(engine, run).id, true);
    const char *trouble = engine_trouble(engine);
    model.trouble = trouble[0] != '\0' ? trouble : NULL;
    assign_slots(live, &model);
    struct live_options *options = &live->options;
    options->columns = size.ws_col;
    options->rows = size.ws_row;
    options->wall_ns = wall_ns;
    options->began_ns = options->began_ns == 0 ? wall_ns : options->began_ns;
    options->slots = live->slots;
    options->slot_count = live->slot_count;
    struct strbuf text = {0};
    live_text(&text, &model, options);
    model_release(&model);
    snapshot_free(glance.snapshot);
    if (live->shown &&
        strcmp(strbuf_text(&text), strbuf_text(&live->drawn)) == 0) {
        strbuf_release(&text);
        return;
    }
    struct strbuf out = {0};
    add_return(&out, live, size.ws_col);
    add_rows(&out, &text);
    strbuf_adds(&out, "\x1b[J");
    emit(live, &out);
    strbuf_release(&out);
    strbuf_release(&live->drawn);
    live->drawn = text;
    live->shown = true;
}

void live_clear(struct live *live)
{
    if (live->shown) {
        struct strbuf out = {0};
        add_return(&out, live, live_terminal_size().ws_col);
        strbuf_adds(&out, "\x1b[J");
        emit(live, &out);
        strbuf_release(&out);
        live->shown = false;
    }
}

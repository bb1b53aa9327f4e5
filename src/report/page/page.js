'use strict';
(function () {
  var doc = document, root = doc.documentElement;
  var data = JSON.parse(doc.getElementById('data').textContent);
  var T = { ID: 0, CLASS: 1, GROUP: 2, STATE: 3, READY: 4, WORK: 5, COUNT: 6, BAD: 7, TITLE: 8, REASON: 9, LABELS: 10 };
  var S = { TASK: 0, NUMBER: 1, LANE: 2, START: 3, LENGTH: 4, OUTCOME: 5, TASKS: 6, PATH: 7, REASON: 8 };
  var tip = doc.getElementById('tip');
  var shownTasks = null; /* matches of the filter: task -> 1; null: all */

  function make(name, props, parent) {
    var node = doc.createElement(name), key;
    for (key in props) {
      if (key in node) { node[key] = props[key]; } else { node.setAttribute(key, props[key]); }
    }
    if (parent) { parent.appendChild(node); }
    return node;
  }

  function duration(ms) {
    var sign = ms < 0 ? '-' : '', units = [[86400, 'd', 3600, 'h'], [3600, 'h', 60, 'min'], [60, 'min', 1, 's']], ix;
    ms = Math.abs(ms);
    if (ms === 0) { return '0'; }
    if (ms < 1) { return sign + '<1 ms'; }
    if (ms < 999.5) { return sign + Math.round(ms) + ' ms'; }
    if (ms < 59950) { return sign + (ms / 1000).toFixed(1) + ' s'; }
    for (ix = 0; ix < 2 && ms / 1000 < units[ix][0] - units[ix][2] / 2; ix++) { /* find the largest unit that fits */ }
    var parts = Math.round(ms / 1000 / units[ix][2]), per = units[ix][0] / units[ix][2];
    return sign + Math.floor(parts / per) + ' ' + units[ix][1] + (parts % per ? ' ' + parts % per + ' ' + units[ix][3] : '');
  }

  /* --- tooltip ---------------------------------------------------------- */

  function showTip(x, y, lines) {
    tip.textContent = '';
    lines.forEach(function (line) {
      if (line) { make(line.name || 'span', { textContent: line.text, className: line.bad ? 'bad' : '' }, tip); }
    });
    tip.hidden = false;
    var box = tip.getBoundingClientRect();
    tip.style.left = Math.max(8, Math.min(x + 14, innerWidth - box.width - 8)) + 'px';
    tip.style.top = (y + 18 + box.height > innerHeight ? Math.max(8, y - box.height - 10) : y + 18) + 'px';
  }

  function hideTip() { tip.hidden = true; }

  /* --- timeline --------------------------------------------------------- */

  var chart = doc.getElementById('chart');
  var view = { from: 0, to: Math.max(data.end, 1) };
  var lanes = [], canvas, pen, size = { width: 0, height: 0 };
  var SHOWN = Math.min(data.lanes, 400); /* slots; a canvas has its limits */
  var AXIS = 26, LABEL = 58, laneHeight = 20, style = {};
  var STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5, 9e5, 18e5, 36e5, 72e5, 108e5, 216e5, 432e5, 864e5];

  function readStyle() {
    var values = getComputedStyle(root);
    ['bg', 'fg', 'soft', 'line', 'lane', 'crit', 'c0', 'c1', 'c2', 'c3', 'c4', 'c5', 'c6', 'c7'].forEach(function (name) {
      style[name] = values.getPropertyValue('--' + name).trim();
    });
  }

  function sortLanes() {
    var ix;
    for (ix = 0; ix < data.lanes; ix++) { lanes.push([]); }
    data.sessions.forEach(function (session, at) { lanes[session[S.LANE]].push(at); });
    lanes.forEach(function (lane) {
      lane.sort(function (a, b) { return data.sessions[a][S.START] - data.sessions[b][S.START]; });
    });
  }

  /* Find the first session of a lane that finishes after a time. */
  function firstAfter(lane, time) {
    var low = 0, high = lane.length, middle, session;
    while (low < high) {
      middle = (low + high) >> 1;
      session = data.sessions[lane[middle]];
      if (session[S.START] + session[S.LENGTH] <= time) { low = middle + 1; } else { high = middle; }
    }
    return low;
  }

  function xOf(time) { return LABEL + (time - view.from) / (view.to - view.from) * (size.width - LABEL - 8); }
  function timeOf(x) { return view.from + (x - LABEL) / (size.width - LABEL - 8) * (view.to - view.from); }
  function isShown(session) { return !shownTasks || shownTasks[session[S.TASK]]; }

  function two(number) { return (number < 10 ? '0' : '') + number; }

  /* Format a time on the axis, as exactly as the distance of its ticks requires. */
  function axisTime(time, step) {
    if (time >= 36e5 && step < 6e4) {
      return Math.floor(time / 36e5) + ':' + two(Math.floor(time / 6e4) % 60) + ':' + two(Math.floor(time / 1e3) % 60);
    }
    if (time >= 1e3 && step < 1e3) { return (time / 1e3).toFixed(step < 10 ? 3 : step < 100 ? 2 : 1) + ' s'; }
    return duration(time);
  }

  function drawAxis() {
    var least = (view.to - view.from) / Math.max(2, (size.width - LABEL) / 90), step, time;
    step = STEPS.find(function (s) { return s >= least; }) || Math.ceil(least / 864e5) * 864e5;
    pen.font = '11px system-ui,sans-serif';
    pen.textAlign = 'center';
    for (time = Math.ceil(view.from / step) * step; time <= view.to; time += step) {
      pen.fillStyle = style.line;
      pen.fillRect(Math.round(xOf(time)), 0, 1, size.height - AXIS);
      pen.fillStyle = style.soft;
      pen.fillText(axisTime(time, step), Math.min(xOf(time), size.width - 22), size.height - 9);
    }
  }

  /* Draw the lanes up to the cap; lanes above it stay empty. */
  function drawCap() {
    data.caps.forEach(function (cap, ix) {
      var to = ix + 1 < data.caps.length ? data.caps[ix + 1][0] : data.end;
      var count = cap[1] < 0 ? SHOWN : Math.min(cap[1], SHOWN);
      var x = Math.max(LABEL, xOf(cap[0])), end = Math.min(size.width - 8, xOf(to));
      if (end > x) {
        pen.fillStyle = style.lane;
        for (var lane = 0; lane < count; lane++) { pen.fillRect(x, 6 + lane * (laneHeight + gap()), end - x, laneHeight); }
      }
    });
  }

  function gap() { return laneHeight > 8 ? 3 : 1; }

  function drawName(session, x, y, width) {
    var task = data.tasks[session[S.TASK]], text = task[T.ID] + (session[S.TASKS] > 1 ? ' +' + (session[S.TASKS] - 1) : '');
    if (laneHeight < 14 || width < 24) { return; }
    var room = Math.floor((width - 8) / 6.7);
    if (text.length > room) { text = room > 4 ? text.slice(0, room - 1) + '…' : ''; }
    pen.fillStyle = task[T.CLASS] % 8 === 0 ? '#fff' : '#111';
    pen.textAlign = 'left';
    pen.font = '11px ui-monospace,Menlo,Consolas,monospace';
    pen.fillText(text, x + 5, y + laneHeight / 2 + 4);
  }

  function drawSession(session, y) {
    var x = Math.max(LABEL, xOf(session[S.START])), end = Math.min(size.width - 8, xOf(session[S.START] + session[S.LENGTH]));
    var width = Math.max(end - x, 0.6), inner = width > 4 ? width - 1 : width;
    pen.globalAlpha = isShown(session) ? 1 : 0.15;
    pen.fillStyle = style['c' + data.tasks[session[S.TASK]][T.CLASS] % 8];
    pen.fillRect(x, y, inner, laneHeight);
    if (data.bad[session[S.OUTCOME]]) {
      pen.fillStyle = style.fg;
      pen.fillRect(x + inner - Math.min(3, inner / 2), y, Math.min(3, inner / 2), laneHeight);
    }
    if (session[S.PATH] && laneHeight > 5) {
      pen.fillStyle = style.crit;
      pen.fillRect(x, y + laneHeight - 3, inner, 3);
    }
    drawName(session, x, y, inner);
    pen.globalAlpha = 1;
  }

  function drawLane(lane, ix) {
    var y = 6 + ix * (laneHeight + gap()), at, session, last = -1, x;
    if (laneHeight > 11 || ix % 10 === 9 || ix === 0) {
      pen.fillStyle = style.soft;
      pen.font = '11px system-ui,sans-serif';
      pen.textAlign = 'right';
      pen.fillText('slot ' + (ix + 1), LABEL - 8, y + laneHeight / 2 + 4);
    }
    for (at = firstAfter(lane, view.from); at < lane.length; at++) {
      session = data.sessions[lane[at]];
      if (session[S.START] > view.to) { break; }
      /* Of sessions within half a pixel, draw only the first. */
      x = xOf(session[S.START] + session[S.LENGTH]);
      if (x - last < 0.4 && at > 0 && !data.bad[session[S.OUTCOME]]) { continue; }
      last = x;
      drawSession(session, y);
    }
  }

  function draw() {
    var ratio = window.devicePixelRatio || 1;
    canvas.width = Math.round(size.width * ratio);
    canvas.height = Math.round(size.height * ratio);
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.fillStyle = style.bg;
    pen.fillRect(0, 0, size.width, size.height);
    drawCap();
    drawAxis();
    lanes.slice(0, SHOWN).forEach(drawLane);
    canvas.setAttribute('data-from', view.from.toFixed(1));
    canvas.setAttribute('data-to', view.to.toFixed(1));
  }

  var due = 0;
  function redraw() {
    if (!due) { due = requestAnimationFrame(function () { due = 0; draw(); }); }
  }

  function resize() {
    var rows = Math.max(1, SHOWN);
    laneHeight = rows <= 24 ? 20 : rows <= 60 ? 11 : rows <= 150 ? 5 : 2;
    size.width = Math.max(280, chart.clientWidth - 2);
    size.height = 12 + rows * (laneHeight + gap()) + AXIS;
    canvas.style.height = size.height + 'px';
    draw();
  }

  function zoom(factor, middle) {
    var whole = Math.max(data.end, 1), length = (view.to - view.from) * factor;
    if (middle === undefined) { middle = (view.from + view.to) / 2; }
    length = Math.min(whole, Math.max(length, Math.min(whole, 2)));
    var share = (middle - view.from) / (view.to - view.from);
    move(middle - share * length, length);
  }

  function move(from, length) {
    var whole = Math.max(data.end, 1);
    view.from = Math.max(0, Math.min(from, whole - length));
    view.to = view.from + length;
    redraw();
  }

  function sessionAt(x, y) {
    var ix = Math.floor((y - 6) / (laneHeight + gap())), lane = ix < SHOWN ? lanes[ix] : null, at, session;
    if (!lane || x < LABEL) { return null; }
    var near = 3 * (view.to - view.from) / size.width, time = timeOf(x);
    at = firstAfter(lane, time - near);
    session = data.sessions[lane[at]];
    return session && session[S.START] <= time + near ? session : null;
  }

  function describe(session) {
    var task = data.tasks[session[S.TASK]], bad = data.bad[session[S.OUTCOME]];
    return [
      { name: 'b', text: task[T.ID] + (session[S.TASKS] > 1 ? ' and ' + (session[S.TASKS] - 1) + ' more' : '') },
      task[T.TITLE] ? { text: task[T.TITLE] } : null,
      { text: data.classes[task[T.CLASS]] + ', attempt ' + session[S.NUMBER] + ', slot ' + (session[S.LANE] + 1) },
      { text: 'from ' + duration(session[S.START]) + ', took ' + duration(session[S.LENGTH]) },
      { text: data.outcomes[session[S.OUTCOME]] + (session[S.REASON] ? ': ' + session[S.REASON] : ''), bad: bad },
      session[S.PATH] ? { text: 'on the critical path', bad: true } : null
    ];
  }

  function listen() {
    var drag = null;
    canvas.addEventListener('pointermove', function (event) {
      var box = canvas.getBoundingClientRect(), session;
      if (drag) {
        move(drag.from - (event.clientX - drag.x) / (size.width - LABEL - 8) * (view.to - view.from), view.to - view.from);
        return;
      }
      session = sessionAt(event.clientX - box.left, event.clientY - box.top);
      if (session) { showTip(event.clientX, event.clientY, describe(session)); } else { hideTip(); }
    });
    canvas.addEventListener('pointerdown', function (event) {
      drag = { x: event.clientX, from: view.from };
      canvas.setPointerCapture(event.pointerId);
      canvas.classList.add('drag');
      hideTip();
    });
    ['pointerup', 'pointercancel'].forEach(function (name) {
      canvas.addEventListener(name, function () { drag = null; canvas.classList.remove('drag'); });
    });
    canvas.addEventListener('pointerleave', hideTip);
    canvas.addEventListener('wheel', function (event) {
      var box = canvas.getBoundingClientRect();
      if (event.ctrlKey || event.metaKey) {
        event.preventDefault();
        zoom(Math.exp(event.deltaY / 300), timeOf(event.clientX - box.left));
      } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        event.preventDefault();
        move(view.from + event.deltaX / size.width * (view.to - view.from), view.to - view.from);
      }
    }, { passive: false });
    canvas.addEventListener('keydown', function (event) {
      var length = view.to - view.from;
      if (event.key === '+' || event.key === '=') { zoom(0.5); }
      else if (event.key === '-') { zoom(2); }
      else if (event.key === '0') { move(0, Math.max(data.end, 1)); }
      else if (event.key === 'ArrowLeft') { move(view.from - length / 5, length); }
      else if (event.key === 'ArrowRight') { move(view.from + length / 5, length); }
      else { return; }
      event.preventDefault();
    });
    window.addEventListener('resize', resize);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', function () { readStyle(); draw(); });
  }

  function buildChart() {
    var tools = make('div', { className: 'tools' }, chart);
    make('button', { id: 'zoom-in', textContent: '+', title: 'Zoom in', type: 'button', onclick: function () { zoom(0.5); } }, tools);
    make('button', { id: 'zoom-out', textContent: '−', title: 'Zoom out', type: 'button', onclick: function () { zoom(2); } }, tools);
    make('button', { id: 'zoom-all', textContent: 'Whole run', type: 'button', onclick: function () { move(0, Math.max(data.end, 1)); } }, tools);
    make('span', { className: 'hint', textContent: 'Ctrl + wheel zooms, dragging moves; the line under a session is the critical path' }, tools);
    canvas = make('canvas', { tabIndex: 0 }, chart);
    if (SHOWN < data.lanes) { make('p', { className: 'note', textContent: 'and ' + (data.lanes - SHOWN) + ' more slots' }, chart); }
    canvas.setAttribute('role', 'img');
    canvas.setAttribute('aria-label', 'Timeline of ' + data.sessions.length + ' sessions in ' + data.lanes + ' slots. Keys: plus, minus, 0, arrows.');
    pen = canvas.getContext('2d');
    readStyle();
    sortLanes();
    listen();
    resize();
  }

  /* --- list of tasks ---------------------------------------------------- */

  var ROW = 28, list = doc.getElementById('list'), rows = [], order = [], sorting = { column: -1, down: false };
  var COLUMNS = [
    ['Task', T.ID], ['Class', T.CLASS], ['State', T.STATE], ['Sessions', T.COUNT],
    ['Unsuccessful', T.BAD], ['Ready', T.READY], ['Working', T.WORK], ['Title, reason', T.TITLE]
  ];
  var only = data.only && data.only.reduce(function (all, ix) { all[ix] = 1; return all; }, {});
  var box, body, head, count, search, stateBox, classBox;

  function cell(row, text, className) { make('span', { textContent: text, title: text, className: className || '', role: 'cell' }, row); }

  function addRow(at) {
    var task = data.tasks[order[at]], row = make('div', { className: 'vrow', role: 'row' }, body);
    var words = [task[T.REASON], task[T.TITLE], task[T.LABELS]].filter(Boolean).join(' · ');
    row.style.top = at * ROW + 'px';
    cell(row, task[T.ID], 'id');
    var name = make('span', { role: 'cell', title: data.classes[task[T.CLASS]] }, row);
    make('i', { className: 'mark c' + task[T.CLASS] % 8 }, name);
    name.appendChild(doc.createTextNode(data.classes[task[T.CLASS]]));
    cell(row, data.states[task[T.STATE]], /failed|parked|skipped|cancelled/.test(data.states[task[T.STATE]]) ? 'bad' : '');
    cell(row, task[T.COUNT], 'n');
    cell(row, task[T.BAD], 'n' + (task[T.BAD] ? ' bad' : ''));
    cell(row, duration(task[T.READY]), 'n');
    cell(row, duration(task[T.WORK]), 'n');
    cell(row, words, 'text');
  }

  /* Create only the visible rows. */
  function showRows() {
    var first = Math.max(0, Math.floor(box.scrollTop / ROW) - 6), last = Math.min(order.length, first + Math.ceil(box.clientHeight / ROW) + 12), at;
    body.textContent = '';
    for (at = first; at < last; at++) { addRow(at); }
  }

  function compare(a, b) {
    var x = data.tasks[a][sorting.column], y = data.tasks[b][sorting.column];
    if (sorting.column === T.CLASS) { x = data.classes[x]; y = data.classes[y]; }
    if (sorting.column === T.STATE) { x = data.states[x]; y = data.states[y]; }
    if (sorting.column === T.TITLE) { x = data.tasks[a][T.REASON] || x || ''; y = data.tasks[b][T.REASON] || y || ''; }
    return (x < y ? -1 : x > y ? 1 : a - b) * (sorting.down ? -1 : 1);
  }

  function filter() {
    var words = search.value.toLowerCase().split(/\s+/).filter(Boolean), state = stateBox.value, kind = classBox.value;
    order = [];
    data.tasks.forEach(function (task, ix) {
      var text = rows[ix];
      if ((!only || only[ix]) && (state === '' || task[T.STATE] === +state) && (kind === '' || task[T.CLASS] === +kind) &&
          words.every(function (word) { return text.indexOf(word) >= 0; })) { order.push(ix); }
    });
    shownTasks = null;
    if (order.length < data.tasks.length) {
      shownTasks = {};
      order.forEach(function (ix) { shownTasks[ix] = 1; });
    }
    if (sorting.column >= 0) { order.sort(compare); }
    body.style.height = order.length * ROW + 'px';
    count.textContent = order.length + ' of ' + (data.only || data.tasks).length + ' tasks';
    showRows();
    redraw();
  }

  function sortBy(column, button) {
    sorting = { column: column, down: sorting.column === column ? !sorting.down : column > T.STATE && column !== T.TITLE };
    Array.prototype.forEach.call(head.children, function (other) { other.removeAttribute('aria-sort'); });
    button.setAttribute('aria-sort', sorting.down ? 'descending' : 'ascending');
    filter();
  }

  function choice(parent, label, names, used) {
    var select = make('select', { 'aria-label': label, onchange: filter }, parent);
    select.setAttribute('aria-label', label);
    make('option', { value: '', textContent: label }, select);
    names.forEach(function (name, ix) { if (used[ix]) { make('option', { value: ix, textContent: name }, select); } });
    return select;
  }

  function buildList() {
    var tools = make('div', { className: 'tools' }, list), states = {}, kinds = {};
    data.tasks.forEach(function (task) {
      states[task[T.STATE]] = kinds[task[T.CLASS]] = 1;
      rows.push([task[T.ID], task[T.GROUP] < 0 ? '' : data.groups[task[T.GROUP]], data.classes[task[T.CLASS]], data.states[task[T.STATE]], task[T.TITLE] || '', task[T.REASON] || '', task[T.LABELS] || ''].join(' ').toLowerCase());
    });
    search = make('input', { type: 'search', id: 'search', placeholder: 'Find tasks: id, issue, title, reason', oninput: filter }, tools);
    search.setAttribute('aria-label', 'Find tasks');
    stateBox = choice(tools, 'Every state', data.states, states);
    classBox = choice(tools, 'Every class', data.classes, kinds);
    count = make('span', { className: 'hint', id: 'count' }, tools);
    count.setAttribute('aria-live', 'polite');
    box = make('div', { className: 'vlist', tabIndex: 0 }, list);
    box.setAttribute('role', 'table');
    box.setAttribute('aria-label', 'Tasks');
    head = make('div', { className: 'vhead' }, box);
    head.setAttribute('role', 'row');
    COLUMNS.forEach(function (column, ix) {
      var button = make('button', { type: 'button', textContent: column[0], className: ix > 2 && ix < 7 ? 'n' : '' }, head);
      button.onclick = function () { sortBy(column[1], button); };
    });
    body = make('div', { className: 'vbody' }, box);
    box.style.maxHeight = '560px';
    box.addEventListener('scroll', showRows);
    filter();
  }

  root.classList.add('js');
  if (data.sessions.length) { buildChart(); } else { chart.textContent = 'No session has been started.'; redraw = function () {}; }
  buildList();
}());

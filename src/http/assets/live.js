(function () {
'use strict';
/* The server makes the page. This script asks for the parts that have changed,
 * and puts them in place of the old ones. Without it, everything works by links
 * and forms. */
var moved = 0, pointed = false, stream = null, heard = Date.now(), shown = Date.now(), busy = false, again = false, wait = 0, needs = null;
var stale = document.getElementById('stale'), live = !!document.getElementById('head');
function all(selector, root) { return Array.prototype.slice.call((root || document).querySelectorAll(selector)); }
function one(selector) { return document.querySelector(selector); }
function make(name, parent, values) { return Object.assign(parent.appendChild(document.createElement(name)), values); }
function limit(ms) { return window.AbortSignal && AbortSignal.timeout ? AbortSignal.timeout(ms) : undefined; }
function parse(text) { return new DOMParser().parseFromString(text, 'text/html'); }

/* --- parts --- */
function typing(part) {
  var at = document.activeElement;
  if (at && part.contains(at) && /^(TEXTAREA|INPUT|SELECT)$/.test(at.tagName)) return true;
  return all('textarea', part).some(function (box) { return box.value; });
}
function notify(count) {
  var grown = needs !== null && count > needs;
  needs = count;
  badge(count);
  if (grown && window.Notification && Notification.permission === 'granted') {
    new Notification(document.title, {body: count + ' need you', tag: 'sluice'});
  }
}
function badge(count) {
  var link = one('link[rel=icon]'), fill = count ? '%23b84300' : '%230550ae';
  if (!link || link.dataset.count === String(count)) return;
  link.dataset.count = count;
  link.href = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32'%3E%3Crect width='32' height='32' rx='7' fill='" + fill +
    "'/%3E%3Ctext x='16' y='23' font-size='20' font-family='sans-serif' text-anchor='middle' fill='white'%3E" + (count ? Math.min(count, 99) : 's') + '%3C/text%3E%3C/svg%3E';
}
function place(part) {
  var old = document.getElementById(part.id), order, next;
  if (!old) { /* a part that was not there: before the next one that is */
    order = ['head', 'task', 'graph', 'log-part', 'needs', 'slots', 'waiting', 'tasks', 'runs', 'machines', 'events'];
    for (next = order.indexOf(part.id) + 1; next < order.length && !document.getElementById(order[next]);) next++;
    one('main').insertBefore(part, next < order.length ? document.getElementById(order[next]) : null);
    return;
  }
  if (typing(old)) return;
  var at = document.activeElement, inside = at && old.contains(at), index = inside ? all('a,button,summary,[tabindex]', old).indexOf(at) : -1, id = inside ? at.id : '';
  var open = all('details', old).map(function (item) { return item.open; });
  var left = all('.scroll', old).map(function (item) { return item.scrollLeft; });
  old.replaceWith(part);
  if (part.id === 'needs') moved = Date.now();
  all('details', part).forEach(function (item, ix) { item.open = !!open[ix]; });
  all('.scroll', part).forEach(function (item, ix) { item.scrollLeft = left[ix] || 0; });
  at = id ? document.getElementById(id) : index >= 0 ? all('a,button,summary,[tabindex]', part)[index] : null;
  if (at) at.focus({preventScroll: true});
}
function take(text) {
  all('[data-part]', parse(text)).forEach(function (part) { place(document.importNode(part, true)); });
  var count = document.getElementById('count');
  if (count) {
    /* When a run has ended, others are shown. */
    all('[data-part]').forEach(function (part) {
      if (count.dataset.parts.split(' ').indexOf(part.id) < 0) part.remove();
    });
    document.title = count.textContent;
    notify(Number(count.value));
  }
  tick();
}
function load() {
  if (busy) { again = true; return; }
  busy = true;
  var query = new URLSearchParams(location.search), have = all('[data-part]').map(function (part) { return part.dataset.part; });
  query.set('have', have.join(','));
  fetch('/parts?' + query, {credentials: 'same-origin', signal: limit(8000)}).then(function (answer) {
    if (!answer.ok) throw new Error(String(answer.status));
    return answer.text();
  }).then(function (text) { shown = heard = Date.now(); stale.hidden = true; take(text); }, function () {
    stale.hidden = Date.now() - shown < 4000;
    setTimeout(load, 1000);
  }).then(function () { busy = false; if (again) { again = false; load(); } });
}
function follow() {
  if (stream) stream.close();
  heard = Date.now();
  stream = new EventSource('/live');
  stream.addEventListener('news', function () { heard = Date.now(); load(); });
  stream.addEventListener('ping', function () { heard = Date.now(); });
  stream.onerror = function () {
    if (stream.readyState === 2) setTimeout(follow, 1000);
    if (Date.now() - shown > 4000) stale.hidden = false;
  };
}
/* A stream may die without a word: then make another one, and ask. */
function watch() {
  if (Date.now() - heard > 12000) stale.hidden = false;
  if (Date.now() - heard > 12000 || stream.readyState === 2) { follow(); heard = shown; load(); }
}

/* --- times --- */
function words(s) {
  if (s < 60) return Math.floor(s) + 's';
  if (s < 3600) return Math.floor(s / 60) + 'm';
  if (s < 86400) return Math.floor(s / 3600) + 'h ' + ('0' + Math.floor(s / 60) % 60).slice(-2) + 'm';
  return Math.floor(s / 86400) + 'd ' + Math.floor(s / 3600) % 24 + 'h';
}
function tick() {
  all('[data-since]').forEach(function (item) {
    var text = words(Math.max(0, Date.now() - Number(item.dataset.since)) / 1000);
    if (item.textContent !== text) item.textContent = text;
  });
}

/* --- logs --- */
function read() {
  var log = document.getElementById('log'), query = new URLSearchParams(location.search);
  if (!log || log.dataset.over === '1' || document.hidden) return;
  query.set('attempt', log.dataset.attempt);
  query.set('from', log.dataset.next);
  query.delete('at');
  if (log.dataset.links) query.set('links', '1');
  fetch('/lines?' + query, {credentials: 'same-origin'}).then(function (answer) { return answer.ok ? answer.text() : ''; }).then(function (text) {
    var piece = text && parse(text).getElementById('piece'), end = log.scrollTop + log.clientHeight > log.scrollHeight - 20;
    if (!piece || piece.dataset.next === log.dataset.next && piece.dataset.over === log.dataset.over) return;
    log.dataset.next = piece.dataset.next;
    log.dataset.over = piece.dataset.over;
    all('.ll', piece).forEach(function (line) { log.appendChild(document.importNode(line, true)); });
    while (log.children.length > 5000) log.removeChild(log.firstChild);
    if (end) log.scrollTop = log.scrollHeight;
  }, function () {});
}

/* --- orders --- */
function send(form, button) {
  if (form.dataset.busy) return; /* a double click */
  form.dataset.busy = '1';
  var data = new URLSearchParams(new FormData(form));
  if (button && button.name) data.set(button.name, button.value);
  fetch(form.action, {method: 'POST', body: data, redirect: 'manual', credentials: 'same-origin'}).then(function (answer) {
    if (answer.type === 'opaqueredirect' || answer.ok) {
      all('textarea', form).forEach(function (box) { box.value = ''; box.blur(); });
      if (live) load();
      else if (form.dataset.then) location.href = form.dataset.then;
      return '';
    }
    return answer.text();
  }, function () { return 'no connection: the order was not sent'; }).then(function (text) {
    delete form.dataset.busy;
    if (!text) return;
    var why = parse(text).getElementById('why');
    alert(why ? why.textContent : text);
  });
}
document.addEventListener('click', function (event) { pointed = event.detail > 0; }, true);
document.addEventListener('submit', function (event) {
  var form = event.target;
  if (form.method !== 'post') return;
  event.preventDefault();
  var verb = event.submitter ? event.submitter.value : '';
  /* The list may have moved under the pointer. */
  if (pointed && Date.now() - moved < 500 && form.closest('#needs')) return;
  if (/^(cancel|drain)$/.test(verb) && !confirm(verb === 'drain' ? 'Start nothing more, and exit after the last session?' : 'Cancel this task for good?')) return;
  send(form, event.submitter);
});

/* --- comments on a diff --- */
document.addEventListener('click', function (event) {
  var line = event.target.closest ? event.target.closest('[data-at]') : null, form, row, box, cell;
  if (!line) return;
  event.preventDefault();
  row = line.closest('tr');
  if (row.nextElementSibling && row.nextElementSibling.className === 'note') { row.nextElementSibling.querySelector('textarea').focus(); return; }
  form = make('tr', row.parentNode, {className: 'note'});
  cell = make('td', form, {colSpan: 3});
  make('input', cell, {type: 'hidden', name: 'at', value: line.dataset.at});
  box = make('textarea', cell, {name: 'note', rows: 2});
  box.setAttribute('aria-label', 'Comment on ' + line.dataset.at);
  row.after(form);
  box.focus();
});

/* --- keys --- */
function step(by) {
  var links = all('#tasks tbody a, #needs li > a, #slots li > a'), at = links.indexOf(document.activeElement);
  if (links.length) links[(at + by + links.length) % links.length].focus();
}
function press(selector) { var button = one(selector); if (button) button.click(); }
document.addEventListener('keydown', function (event) {
  if (/^(TEXTAREA|INPUT|SELECT)$/.test(event.target.tagName)) { if (event.key === 'Escape') event.target.blur(); return; }
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  var keys = document.getElementById('keys'), go = {a: '#needs textarea', '/': '#find', l: '#log', d: '#to-diff'}[event.key], to = go && one(go);
  if (event.key === '?') { if (keys.open) keys.close(); else keys.showModal(); }
  if (event.key === 'n' && window.Notification) Notification.requestPermission();
  if (event.key === 'j' || event.key === 'k') step(event.key === 'j' ? 1 : -1);
  if (event.key === '+' || event.key === '-') press('#head button[value="' + (event.key === '+' ? '1' : '-1') + '"]');
  if (event.key === 'p') press('#head button[value=pause], #head button[value=resume]');
  if (event.key === 'u') { var up = one('h1 a'); if (up) location.href = up.href; }
  if (event.key === 'd' && to) location.href = to.href;
  else if (to) to.focus();
  if (to) event.preventDefault();
});

var log = document.getElementById('log');
if (log && log.dataset.end && !location.hash) log.scrollTop = log.scrollHeight;
setInterval(read, 1000);
setInterval(tick, 1000);
if (live) {
  notify(Number((document.getElementById('count') || {}).value || 0));
  follow();
  setInterval(watch, 3000);
  document.addEventListener('visibilitychange', function () { if (!document.hidden) load(); });
  tick();
}
})();

(function () {
'use strict';
/* The server makes the page. This script fetches it again when something has
 * happened, and replaces the parts that have changed. */
var stream = null, timer = 0, busy = false, again = false, last = 0, needs = null;
var stale = document.getElementById('stale');
function each(list, fn) { Array.prototype.forEach.call(list, fn); }
function typing(part) {
  var at = document.activeElement;
  if (at && part.contains(at) && /^(TEXTAREA|INPUT|SELECT)$/.test(at.tagName)) return true;
  var open = false;
  each(part.querySelectorAll('textarea'), function (box) { if (box.value) open = true; });
  return open;
}
function notify(count) {
  var grown = needs !== null && count > needs;
  needs = count;
  if (grown && window.Notification && Notification.permission === 'granted') {
    new Notification(document.title, {body: count + ' need you', tag: 'sluice'});
  }
}
function take(text) {
  var next = new DOMParser().parseFromString(text, 'text/html');
  if (!next.getElementById('head')) return;
  each(next.querySelectorAll('[data-part]'), function (part) {
    var old = document.getElementById(part.id);
    if (!old || old.outerHTML === part.outerHTML || typing(old)) return;
    var id = document.activeElement && old.contains(document.activeElement) ? document.activeElement.id : '';
    var log = old.querySelector('pre'), at = log && log.scrollTop, end = log && log.scrollTop + log.clientHeight > log.scrollHeight - 20;
    old.replaceWith(document.importNode(part, true));
    var made = document.getElementById(part.id), pre = made.querySelector('pre');
    if (pre && log) pre.scrollTop = end ? pre.scrollHeight : at;
    if (id && document.getElementById(id)) document.getElementById(id).focus();
  });
  document.title = next.title;
  notify(Number(next.body.dataset.needs || 0));
}
function load() {
  if (busy) { again = true; return; }
  busy = true;
  fetch(location.href, {credentials: 'same-origin', headers: {Accept: 'text/html'}}).then(function (answer) {
    if (!answer.ok) throw new Error(String(answer.status));
    return answer.text();
  }).then(function (text) { last = Date.now(); stale.hidden = true; take(text); }, function () {
    stale.hidden = Date.now() - last < 4000;
    setTimeout(soon, 2000);
  }).then(function () { busy = false; if (again) { again = false; soon(); } });
}
function soon() { if (!timer) timer = setTimeout(function () { timer = 0; load(); }, 120); }
function follow() {
  if (stream) stream.close();
  stream = new EventSource('/api/v1/events/stream');
  stream.onmessage = soon;
  stream.onopen = soon;
  stream.addEventListener('reset', soon);
  stream.onerror = function () { if (stream.readyState === 2) setTimeout(follow, 2000); soon(); };
}
/* A stream may die without a word: look now and then, whatever it says. */
setInterval(function () {
  if (stream.readyState === 2) follow();
  if (Date.now() - last > 10000) soon();
}, 3000);
document.addEventListener('visibilitychange', function () { if (!document.hidden) soon(); });
document.addEventListener('submit', function (event) {
  var form = event.target;
  if (form.method !== 'post') return;
  event.preventDefault();
  var data = new URLSearchParams(new FormData(form, event.submitter));
  fetch(form.action, {method: 'POST', body: data, redirect: 'manual', credentials: 'same-origin'}).then(function (answer) {
    if (answer.type === 'opaqueredirect' || answer.ok) {
      each(form.querySelectorAll('textarea'), function (box) { box.value = ''; box.blur(); });
      soon();
      return '';
    }
    return answer.text();
  }).then(function (text) {
    if (text) {
      var page = new DOMParser().parseFromString(text, 'text/html'), why = page.getElementById('why');
      alert(why ? why.textContent : 'The order was refused.');
    }
  });
});
document.addEventListener('keydown', function (event) {
  if (/^(TEXTAREA|INPUT|SELECT)$/.test(event.target.tagName) || event.ctrlKey || event.metaKey || event.altKey) return;
  var keys = document.getElementById('keys'), go = {a: '#needs textarea', '/': '#find', l: '#log', t: '#tasks a'}[event.key];
  if (event.key === '?' && keys) { if (keys.open) keys.close(); else keys.showModal(); }
  if (event.key === 'n' && window.Notification) Notification.requestPermission();
  if (go && document.querySelector(go)) { document.querySelector(go).focus(); event.preventDefault(); }
});
last = Date.now();
notify(Number(document.body.dataset.needs || 0));
follow();
})();

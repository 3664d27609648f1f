// Prepares the terminal of textual.js: its address, and letters so small that 80 columns fit.
"use strict";
(() => {
  const COLUMNS = 80, LETTER_WIDTH = 0.6, LARGEST = 16, SMALLEST = 6;
  const terminal = document.getElementById("terminal");
  const fitting = Math.floor(window.innerWidth / COLUMNS / LETTER_WIDTH);
  terminal.dataset.fontSize = Math.max(SMALLEST, Math.min(LARGEST, fitting));
  const address = new URL("ws", window.location.href);
  address.protocol = address.protocol.replace("http", "ws");
  terminal.dataset.sessionWebsocketUrl = address.href;
  // buttons for touch screens write to the connection that textual.js makes
  let socket = null;
  const Plain = window.WebSocket;
  window.WebSocket = class extends Plain {
    constructor(...address) { super(...address); socket = this; }
  };
  const KEYS = [
    ["1", "1"], ["2", "2"], ["3", "3"], ["4", "4"], ["5", "5"], ["6", "6"],
    ["||", " ", "Pause"], ["\u2190", "\x1b[D", "Back"], ["\u2192", "\x1b[C", "Forward"],
    ["?", "?", "Help"], ["Esc", "\x1b", "Close"],
  ];
  for (const [label, key, name] of KEYS) {
    const button = document.createElement("button");
    button.textContent = label;
    button.setAttribute("aria-label", name || `Panel ${label}`);
    button.onclick = () => {
      if (socket && socket.readyState === Plain.OPEN) socket.send(JSON.stringify(["stdin", key]));
    };
    document.getElementById("keys").append(button);
  }
  // letters are measured once, so the font must be there
  const start = window.onload;
  window.onload = (event) => {
    const begin = () => start(event);
    document.fonts.load("16px 'Roboto Mono'").then(begin, begin);
  };
})();

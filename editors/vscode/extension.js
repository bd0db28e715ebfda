// Starts `brolga lsp` for `.jlir` files.
//
//   editor ── vscode-languageclient ── standard input and output ── brolga lsp
//
// The commands behind lenses (`brolga.run`, `brolga.explore`) are the server's; the client library registers them. This file has the
// commands of the palette, which need a task or the file at hand.

'use strict';

const vscode = require('vscode');
const { LanguageClient, TransportKind } = require('vscode-languageclient/node');

let client;

function settings() {
  return vscode.workspace.getConfiguration('brolga');
}

async function start() {
  const command = settings().get('path', 'brolga');
  const server = { command, args: ['lsp'], transport: TransportKind.stdio };
  client = new LanguageClient('brolga', 'Brolga', server, {
    documentSelector: [{ language: 'jlir' }],
    initializationOptions: { steps: settings().get('steps', 20000000) },
  });
  try {
    await client.start();
  } catch (error) {
    const open = 'Open settings';
    const chosen = await vscode.window.showErrorMessage(`\`${command} lsp\` cannot be started: ${error}`, open);
    if (chosen === open) {
      await vscode.commands.executeCommand('workbench.action.openSettings', 'brolga.path');
    }
  }
}

async function stop() {
  const running = client;
  client = undefined;
  if (running && running.isRunning()) {
    await running.stop();
  }
}

// The document at hand, if it is one of ours.
function current() {
  const document = vscode.window.activeTextEditor?.document;
  return document?.languageId === 'jlir' ? document : undefined;
}

async function runNatively() {
  const document = current();
  if (!document || !(await document.save())) {
    return;
  }
  // A task is a process without a shell, and its panel stays when it ends.
  const process = new vscode.ProcessExecution(settings().get('path', 'brolga'), ['run', document.uri.fsPath]);
  const scope = vscode.workspace.getWorkspaceFolder(document.uri) ?? vscode.TaskScope.Global;
  await vscode.tasks.executeTask(new vscode.Task({ type: 'brolga' }, scope, 'run', 'brolga', process));
}

async function exploreFile() {
  const document = current();
  if (document) {
    await vscode.commands.executeCommand('brolga.explore', document.uri.toString());
  }
}

async function activate(context) {
  context.subscriptions.push(
    vscode.commands.registerCommand('brolga.restart', async () => {
      await stop();
      await start();
    }),
    vscode.commands.registerCommand('brolga.runNatively', runNatively),
    vscode.commands.registerCommand('brolga.exploreFile', exploreFile),
  );
  await start();
}

module.exports = { activate, deactivate: stop };
